"""[server]: where the service listens, and who is let in."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from laprasdp.config.oidc import Oidc, read_oidc
from laprasdp.config.section import Section
from laprasdp.errors import ConfigError

ACCOUNTS = "lapras.accounts"
_KINDS: dict[str, Any] = {"int": int, "float": (int, float), "bool": bool}
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s)")


@dataclass(frozen=True)
class Serving:
    """
    How the service runs.

    Attributes
    ----------
    host, port
        Where it listens.
    accounts : Path or str, optional
        The SQLite file, or the address of a PostgreSQL database, that keeps who may do what; beside
        `lapras.toml` otherwise.  An address may hold a password: not for printing.
    tls : bool
        A proxy in front speaks TLS, so cookies are for TLS alone.
    answer_after : float
        Seconds before which no price and no answer is told.
    rate, burst : float, int
        Requests a second of one principal, and how many of them at once.
    session_hours : float
        How long a browser stays signed in.
    drain_seconds : float
        How long open requests may take to end when the service stops.
    begin : {"start", "curator"}
        When the ledger is begun: as the service starts, or as a curator says, who may set predictions before.
    workers : int
        Processes; several need a ledger and accounts on PostgreSQL.
    oidc : Oidc, optional
        Who says elsewhere who somebody is.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    accounts: Path | str | None = field(default=None, repr=False)
    tls: bool = False
    answer_after: float = 0.0
    rate: float = 50.0
    burst: int = 100
    session_hours: float = 12.0
    drain_seconds: float = 30.0
    begin: str = "start"
    workers: int = 1
    oidc: Oidc | None = None


def read_serving(section: Section, folder: Path, environment: Mapping[str, str] | None = None) -> Serving:
    """
    The service from its section; a variable `LAPRAS_SERVER_PORT` goes before the key `port`, and so on.

    Raises
    ------
    ConfigError
        A key or a variable is unknown or wrong.
    """
    own = [one for one in fields(Serving) if one.name != "oidc"]
    section.only(*(one.name for one in own), "oidc")
    found = {}
    for one in own:
        if one.name not in section:
            continue
        kinds = (int, float, str) if one.name == "answer_after" else _KINDS.get(str(one.type), str)
        found[one.name] = section.take(one.name, kinds)
    for name, text in (os.environ if environment is None else environment).items():
        key = name.removeprefix("LAPRAS_SERVER_").lower()
        if not name.startswith("LAPRAS_SERVER_"):
            continue
        if key not in {one.name for one in own}:
            raise ConfigError(f"{name}: there is no such setting of the service")
        found[key] = _spelled(name, text, str(next(one.type for one in own if one.name == key)))
    serving = Serving(
        **{key: value for key, value in found.items() if key not in ("accounts", "answer_after")}
    )
    after, accounts = _seconds(section.where, found.get("answer_after", 0.0)), found.get("accounts", ACCOUNTS)
    _check(section.where, serving)
    place = accounts if "://" in accounts else folder / accounts
    oidc = read_oidc(section.section("oidc", "server.oidc"), environment)
    return replace(serving, answer_after=after, accounts=place, oidc=oidc)


def _seconds(where: str, given: Any) -> float:
    """``"200ms"``, ``"1.5 s"`` or a number of seconds."""
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= 60:
        return float(given)
    matched = _TIME.fullmatch(given.strip()) if isinstance(given, str) else None
    seconds = None if matched is None else float(matched[1]) / (1000 if matched[2] == "ms" else 1)
    if seconds is None or seconds > 60:
        raise ConfigError(f'{where}: answer_after is a time of at most 60 s, such as "200ms"')
    return seconds


def _spelled(name: str, text: str, kind: str) -> Any:
    try:
        if kind == "bool":
            return {"true": True, "false": False}[text.lower()]
        return (
            int(text) if kind == "int" else float(text) if kind == "float" and text[-1:].isdigit() else text
        )
    except (KeyError, ValueError):
        raise ConfigError(f"{name}: the value does not fit: write what `[server]` would hold") from None


def _check(where: str, serving: Serving) -> None:
    for name, least, most in (
        ("port", 0, 65535), ("rate", 1e-3, 1e6), ("burst", 1, 10**6), ("session_hours", 0.01, 24 * 31),
        ("drain_seconds", 0, 3600), ("workers", 1, 64),
    ):  # fmt: skip
        value = getattr(serving, name)
        if not isinstance(value, int | float) or not least <= value <= most:
            raise ConfigError(f"{where}: {name} is a number from {least:g} to {most:g}")
    if serving.begin not in ("start", "curator"):
        raise ConfigError(f'{where}: begin is "start" or "curator", not {serving.begin!r}')
