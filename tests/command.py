"""What the tests of the command share: a way to call it, and a small table with its lapras.toml."""

import subprocess
import sys

from typer.testing import CliRunner

from laprasdp.cli.app import app

ROW = {"line", "query", "value", "nonnegative", "std", "low", "high", "source", "charge", "remaining"} | {
    "released"
}
SMALL = """
[source]
file = "t.csv"
[privacy]
epsilon = 1.0
delta = 1e-6
[stream]
horizon = 10
release = "gaussian"
predictions = ["SELECT COUNT(*) FROM t"]
[domain.n]
type = "integers"
min = 0
max = 9
nullable = true
"""


def lapras(*arguments, code=0, cwd=None, timeout=60, **options):
    """Run the command in a process of its own; nothing it prints is ever a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "laprasdp", *map(str, arguments)],
        cwd=cwd, capture_output=True, text=True, timeout=timeout, **options,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.returncode == code, done.stderr
    return done


def invoke(*arguments, code=0):
    """The same inside this process, which is faster."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result


def write_small(folder):
    """A table of one attribute with 70 rows in the domain, a NULL among them, and rows outside it."""
    (folder / "lapras.toml").write_text(SMALL)
    rows = "".join(f"{i % 7},x\n" for i in range(70))
    (folder / "t.csv").write_text(f"n,m\n{rows},x\n99,x\n")
