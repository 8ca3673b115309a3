"""`lapras serve`: analysts ask in a browser or over HTTP, under one budget."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laprasdp.cli.show import opening, say
from laprasdp.config import read_config
from laprasdp.errors import ConfigError

if TYPE_CHECKING:
    from laprasdp.service.accounts import Accounts


def serve(paths: Sequence[Path], *, demo: bool, **given: Any) -> int:
    """
    Serve until it is told to stop.

    Parameters
    ----------
    paths : sequence of Path
        Of a `lapras.toml` a table; the first one's [server] holds.
    demo : bool
        Serve the packaged flights table from a folder that is thrown away.
    **given
        Settings of the service that go before [server], where they are not None.
    """
    _check_installed()
    from laprasdp.service import demonstration, running

    with ExitStack() as ends:
        if demo:
            folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="lapras-demo-")))
            paths = [demonstration.prepare(folder)]
        configs = [read_config(path) for path in paths]
        chosen = {name: value for name, value in given.items() if value is not None}
        serving = replace(configs[0].serving, **chosen)
        if serving.workers > 1:
            running.check_shared(configs, serving)
        socket = running.listening(serving)
        address = f"http://{_host(serving.host)}:{socket.getsockname()[1]}"
        with closing(running.accounts_of(configs[0], serving)) as accounts:
            _welcome(accounts, address, demo=demo)
        names = ", ".join(config.name for config in configs)
        serving_what = f"serving {names} on {address}; Ctrl-C ends it"
        if serving.workers > 1:
            print(serving_what, flush=True)
            running.run_workers(paths, serving, [socket])
            return 0
        with opening():
            desk = running.opened(configs, serving)
        for table in desk.tables.values():
            if table.waiting:
                print(f"{table.name} waits for a curator to set predictions and begin, on the page Plan")
        print(serving_what, flush=True)
        running.log_to(sys.stderr)
        running.run(desk, [socket])
    return 0


def _welcome(accounts: Accounts, address: str, *, demo: bool) -> None:
    """Say how the first people sign in."""
    from laprasdp.service import demonstration

    if demo:
        for who, token in demonstration.invite(accounts).items():
            print(f"{who:<14} {address}/sign-in?token={token}")
    elif not accounts.principals():
        accounts.add("curator", "curator")
        token = accounts.issue("curator", "first", days=1)
        print(f"nobody is known yet: sign in once as curator by {token}")


def token(path: Path, name: str, role: str | None, cap: float | None, days: float) -> int:
    """Print a new token of a principal, who is made if there is none."""
    _check_installed()
    from laprasdp.service import running

    config = read_config(path)
    accounts = running.accounts_of(config, config.serving)
    if accounts.named(name) is None:
        if role is None:
            raise ConfigError(f"there is nobody of the name {name}: say by --role what {name} may do")
        accounts.add(name, role, cap)
    print(accounts.issue(name, "by lapras token", days=days))
    say(f"lapras: it is shown this once, and expires after {days:g} days")
    return 0


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _check_installed() -> None:
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigError(f"install {error.name}, as pip install 'lapras-dp[server]' does") from None
