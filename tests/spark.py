"""A Spark cluster of the tests' own: a master, two workers and a Connect server on the loopback."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
_QUICK: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.memory": "512m",
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",
}


class Cluster:
    """
    Started when made: master and workers first, the Connect server once `connect` is asked for.

    Raises
    ------
    OSError, subprocess.SubprocessError
        It cannot be started here; the tests that need it are then skipped.
    ModuleNotFoundError
        PySpark is not installed.
    """

    def __init__(self) -> None:
        package = importlib.util.find_spec("pyspark")
        if package is None or package.origin is None:
            raise ModuleNotFoundError("pyspark is not installed")
        java = os.environ.get("JAVA_HOME")
        if shutil.which("java") is None and not (java and Path(java, "bin", "java").exists()):
            raise FileNotFoundError("there is no Java")
        self._home = Path(package.origin).parent
        self.folder = Path(tempfile.mkdtemp(prefix="lapras-"))
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._settings = {**_QUICK, "spark.sql.warehouse.dir": str(self.folder / "warehouse")}
        self._connect: str | None = None
        self._session: Any = None
        port, web = _free(), _free()
        self.master = f"spark://127.0.0.1:{port}"
        self._start("master", _MASTER, "--host", "127.0.0.1", "--port", port, "--webui-port", web)
        _answers(port, self._running["master"])
        for name in ("first", "second"):
            self.start_worker(name)

    @property
    def session(self) -> Any:
        """A session of this process on the cluster; the first call starts it."""
        from pyspark.sql import SparkSession

        if self._session is None:
            builder = SparkSession.builder.master(self.master)
            for key, value in self._settings.items():
                builder = builder.config(key, value)
            self._session = builder.getOrCreate()
        return self._session

    def start_worker(self, name: str) -> None:
        self._start(
            name, _WORKER, "--host", "127.0.0.1", "--cores", "3", "--memory", "4g", "--webui-port", "0",
            "--work-dir", self.folder / name, self.master,
        )  # fmt: skip

    def kill_worker(self, name: str) -> None:
        """Without notice, and its executors with it."""
        self._kill(name)

    @property
    def connect(self) -> str:
        """The address of a Spark Connect server on the cluster."""
        if self._connect is None:
            port = _free()
            options = self._settings | {"spark.connect.grpc.binding.port": str(port)}
            written = [part for key, value in options.items() for part in ("--conf", f"{key}={value}")]
            self._start(
                "connect", "--master", self.master, *written, "--driver-memory", "600m",
                "--class", _CONNECT, "spark-internal", command="spark-submit",
            )  # fmt: skip
            _answers(port, self._running["connect"])
            self._connect = f"sc://127.0.0.1:{port}"
        return self._connect

    def remove(self) -> None:
        if self._session is not None:
            self._session.stop()
        for name in list(self._running):
            self._kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, name: str, *arguments: Any, command: str = "spark-class") -> None:
        log = (self.folder / f"{name}.log").open("wb")
        self._running[name] = subprocess.Popen(
            [self._home / "bin" / command, *map(str, arguments)], cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={
                **os.environ, "SPARK_HOME": str(self._home), "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_DAEMON_MEMORY": "600m", "SPARK_LOCAL_DIRS": str(self.folder / "scratch"),
                "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            },
        )  # fmt: skip
        log.close()

    def _kill(self, name: str) -> None:
        started = self._running.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def _free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _answers(port: int, started: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and started.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise subprocess.SubprocessError("a part of it does not answer")
