"""A run that is killed leaves no workers behind."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RUN = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from experiments.run import end_together
if __name__ == "__main__":
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=end_together) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        time.sleep(600)
"""


def alive(process: int) -> bool:
    """Whether it runs; one that ended and that nobody has asked for yet does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_workers_end_with_the_run_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(RUN, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    ) as run:
        assert run.stdout is not None
        worker = int(run.stdout.readline())
        assert alive(worker)
        run.kill()
    end = time.monotonic() + 60
    while alive(worker) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(worker)
