"""How hypothesis runs: no deadlines, and in the gate always alike; servers, if they can be started."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest
from hypothesis import settings
from postgres import Server
from spark import Cluster

settings.register_profile("here", deadline=None)
settings.register_profile("gate", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("gate" if os.environ.get("CI") else "here")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A running server."""
    try:
        server = Server()
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no PostgreSQL can be started here: {error}")
    yield server
    server.remove()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A running Spark cluster, for `make test-spark`: beside the gate, which it would make minutes longer."""
    if not os.environ.get("LAPRAS_SPARK"):
        pytest.skip("tests of Spark are run by `make test-spark`")
    try:
        started = Cluster()
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no Spark cluster can be started here: {error}")
    yield started
    started.remove()
