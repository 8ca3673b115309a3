"""The commands, their options and exit codes; what a command does stands in the file of its name."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Literal, ParamSpec

import typer

from laprasdp import __version__
from laprasdp.cli.options import (
    Adjusted,
    Analyst,
    ConfigFile,
    Horizon,
    Host,
    Json,
    LogColumn,
    LogFile,
    LogIs,
    LogLines,
    LogTable,
    MaxStd,
    Model,
    NewCap,
    NewRole,
    OnePeriod,
    Port,
    Remeasure,
    Tables,
    Workers,
    columns,
    digests,
    is_level,
    records,
)
from laprasdp.cli.show import refusal, say
from laprasdp.errors import LaprasError, interruptible

P = ParamSpec("P")

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Answers a stream of SQL counting queries over a private table under one privacy budget.",
    epilog="Exit codes: 0 answered, 1 refused or failed (one line on stderr says why), 2 wrong usage.",
)
budgets = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})
ledgers = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Verify and export what is kept; the table is not opened.",
)
app.add_typer(budgets, name="budget")
app.add_typer(ledgers, name="ledger")

FAILED, INTERRUPTED = 1, 130


def guarded(command: Callable[P, int | None]) -> Callable[P, None]:
    """End a command with an exit code; an expected error is one line on stderr, never a traceback."""

    @functools.wraps(command)
    def guard(*arguments: P.args, **options: P.kwargs) -> None:
        as_json = bool(options.get("json") or options.get("as_json"))
        try:
            with _warned(), interruptible():
                code = command(*arguments, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            code = FAILED
        except KeyboardInterrupt:
            say(refusal("interrupted", "interrupted", as_json=as_json))
            code = INTERRUPTED
        except LaprasError as error:
            say(refusal(error.code, str(error), as_json=as_json))
            code = FAILED
        except OSError as error:
            parts = (error.filename, error.strerror or error)
            say(refusal("file", ": ".join(str(part) for part in parts if part), as_json=as_json))
            code = FAILED
        _mute_closed()
        raise typer.Exit(code or 0)

    return guard


@contextlib.contextmanager
def _warned() -> Iterator[None]:
    """A warning of LAPRAS is one line on stderr."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        say(f"lapras: warning: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning, module="laprasdp")
        warnings.showwarning = show
        yield


def _mute_closed() -> None:
    """A closed pipe is noticed here and not while Python shuts down."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _version(wanted: bool) -> None:
    if wanted:
        print(f"lapras {__version__}")
        raise typer.Exit


@app.callback()
def lapras(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a narrow terminal encoding must not end a run


@app.command()
@guarded
def demo(
    json: Json = False,
    table: Annotated[
        Literal["flights", "adult"], typer.Option(help="The packaged table that is asked about.")
    ] = "flights",
    policy: Annotated[str, typer.Option(metavar="NAME", help="The stream algorithm.")] = "primm",
    accounting: Annotated[
        Literal["gaussian", "basic"], typer.Option(help="How charges are added up.")
    ] = "gaussian",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the picture goes.")] = Path("out"),
    seed: Annotated[int, typer.Option(min=0, help="Which queries are drawn; never the noise.")] = 0,
) -> int:
    """Answer 100 private queries on a packaged public table; show their cost and their error."""
    from laprasdp.cli.demo import demo
    from laprasdp.policy.catalog import POLICIES

    if policy not in POLICIES:
        raise typer.BadParameter(f"no policy {policy!r}; there are {', '.join(POLICIES)}")
    return demo(table, policy, accounting, out, seed, as_json=json)


@app.command()
@guarded
def init(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="A Parquet, CSV, JSON or DuckDB file, or postgresql://user@host/name, spark://… and so on.",
        ),
    ],
    name: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="The table inside a database.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="TOML", help="The file to write.")] = Path(
        "lapras.toml"
    ),
    delimiter: Annotated[
        str | None, typer.Option(metavar="SIGN", help="Between the fields of a text file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it is there.")] = False,
    json: Json = False,
) -> int:
    """Write a commented lapras.toml from a table's schema, never from its values."""
    from laprasdp.cli.init import init

    return init(table, name, out, delimiter, force=force, as_json=json)


@app.command()
@guarded
def plan(
    config: ConfigFile = Path("lapras.toml"),
    target_std: Annotated[
        float | None,
        typer.Option(
            metavar="RECORDS",
            callback=records,
            help="Find the smallest ε for this standard deviation, and plan with it.",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Show which errors the budget buys, before any of it is spent; the table is not opened."""
    from laprasdp.cli.plan import plan

    return plan(config, target_std, as_json=json)


@app.command()
@guarded
def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="SQL statements; - reads them from stdin.")],
    config: ConfigFile = Path("lapras.toml"),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    level: Annotated[float, typer.Option(callback=is_level, help="Level of the intervals.")] = 0.95,
    post: Adjusted = None,
    analyst: Analyst = None,
) -> int:
    """Answer a stream of SQL statements, each at once; with a ledger, go on where it stopped."""
    from laprasdp.cli.run import run

    if json and csv:
        raise typer.BadParameter("choose one of --json and --csv")
    return run(file, config, "json" if json else "csv" if csv else "text", level, post, analyst)


@app.command()
@guarded
def ask(
    statement: Annotated[str, typer.Argument(metavar="SQL", help="One SQL statement, in quotes.")],
    config: ConfigFile = Path("lapras.toml"),
    analyst: Analyst = None,
    level: Annotated[float, typer.Option(callback=is_level, help="Level of the interval.")] = 0.95,
    price: Annotated[
        bool, typer.Option("--price", help="Only say what it would be charged; nothing is asked or spent.")
    ] = False,
    max_std: MaxStd = None,
    remeasure: Remeasure = False,
    post: Adjusted = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV, as `lapras run` does.")] = False,
) -> int:
    """Answer one SQL statement on the ledger that lapras.toml names."""
    from laprasdp.cli.ask import ask
    from laprasdp.cli.printing import Format

    if csv and (json or price):
        raise typer.BadParameter("--csv stands alone")
    form: Format = "json" if json else "csv" if csv else "text"
    wish = {"analyst": analyst, "max_std": max_std, "remeasure": remeasure}
    return ask(statement, config, level, wish, post, priced=price, form=form)


@app.command()
@guarded
def serve(
    config: Tables = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve the packaged flights table.")] = False,
    host: Host = None,
    port: Port = None,
    workers: Workers = None,
) -> int:
    """Let analysts ask in a browser or over HTTP, and a curator and an auditor watch."""
    from laprasdp.cli.serve import serve

    return serve(config or [Path("lapras.toml")], demo=demo, host=host, port=port, workers=workers)


@app.command()
@guarded
def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose token.")],
    config: ConfigFile = Path("lapras.toml"),
    role: NewRole = None,
    cap: NewCap = None,
    days: Annotated[float, typer.Option(min=0.01, max=3660, help="Until it expires.")] = 90.0,
) -> int:
    """Print a new token for the service: for its first curator, or one who has lost theirs."""
    from laprasdp.cli.serve import token as made

    return made(config, name, role, cap, days)


@budgets.callback(invoke_without_command=True)
def budget(
    context: typer.Context,
    config: ConfigFile = Path("lapras.toml"),
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the picture goes.")] = Path("out"),
    period: OnePeriod = None,
    json: Json = False,
) -> None:
    """Show what was spent, by whom and on what, what is left, and what that still buys."""
    from laprasdp.cli.budget import budget

    if context.invoked_subcommand is None:
        guarded(budget)(config, out, period, as_json=json)
    elif (config, out, period, json) != (Path("lapras.toml"), Path("out"), None, False):
        raise typer.BadParameter(f"options stand after {context.invoked_subcommand}")


@budgets.command("raise")
@guarded
def raise_budget(
    epsilon: Annotated[float, typer.Option(metavar="E", help="The new ε.")],
    delta: Annotated[float | None, typer.Option(metavar="D", help="The new δ; as before otherwise.")] = None,
    config: ConfigFile = Path("lapras.toml"),
    period: OnePeriod = None,
    analyst: Annotated[str | None, typer.Option(metavar="NAME", help="Who raises it.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    json: Json = False,
) -> int:
    """Raise the budget: an act that the ledger records for good, and that weakens what was promised."""
    from laprasdp.cli.raising import raise_budget

    return raise_budget(config, epsilon, delta, period, analyst, yes=yes, as_json=json)


@ledgers.command()
@guarded
def verify(
    config: ConfigFile = Path("lapras.toml"),
    head: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIGEST",
            callback=digests,
            help="A head written down earlier: it must be there; may be repeated.",
        ),
    ] = None,
    period: OnePeriod = None,
    json: Json = False,
) -> int:
    """Work everything out again from the entries; print what does not agree, and the head to write down."""
    from laprasdp.cli.ledger import verify

    return verify(config, head or [], period, as_json=json)


@ledgers.command()
@guarded
def export(config: ConfigFile = Path("lapras.toml"), period: OnePeriod = None) -> int:
    """Print the ledger as JSON lines, which docs/ledger-format.md says how to check."""
    from laprasdp.cli.ledger import export

    return export(config, period)


predict_app = typer.Typer(no_args_is_help=True, help="Learn from a log which statements to expect.")
app.add_typer(predict_app, name="predict")


@predict_app.command("fit")
@guarded
def predict_fit(
    log: LogFile,
    config: ConfigFile = Path("lapras.toml"),
    log_is: LogIs = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="JSON", help="The file to write.")] = Path(
        "predictions.json"
    ),
    horizon: Horizon = None,
    count: Annotated[int | None, typer.Option(min=1, help="Statements in the prediction set.")] = None,
    model: Model = "mixture",
    table: LogTable = None,
    column: LogColumn = None,
    multiline: LogLines = False,
    json: Json = False,
) -> int:
    """Learn from a log of past statements; write the prediction set with expected counts."""
    from laprasdp.cli.predict import Wanted, fit

    wanted = Wanted(log, config, log_is, horizon, model, table, columns(column), multiline)
    return fit(wanted, count, out, as_json=json)


@predict_app.command("score")
@guarded
def predict_score(
    log: LogFile,
    config: ConfigFile = Path("lapras.toml"),
    log_is: LogIs = None,
    picture: Annotated[Path, typer.Option(metavar="PNG", help="Where the reliability curve goes.")] = Path(
        "out/predictions.png"
    ),
    horizon: Horizon = None,
    windows: Annotated[int, typer.Option(min=1, help="How often to fit and look ahead.")] = 5,
    model: Model = "mixture",
    table: LogTable = None,
    column: LogColumn = None,
    multiline: LogLines = False,
    json: Json = False,
) -> int:
    """Fit on the past of a log and hold it against what came after; draw the reliability curve."""
    from laprasdp.cli.predict import Wanted, score

    wanted = Wanted(log, config, log_is, horizon, model, table, columns(column), multiline)
    return score(wanted, windows, picture, as_json=json)
