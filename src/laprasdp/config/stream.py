"""[stream]: each field of `Stream` is a key, and so is each field of `Reading`."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from laprasdp.config.predictions import KEYS, is_forecast, read_count, read_expected
from laprasdp.config.section import Section, placed
from laprasdp.errors import ConfigError
from laprasdp.pacing.pacing import Reading
from laprasdp.policy.stream import Stream
from laprasdp.queries.domain import Domain
from laprasdp.queries.prediction import Prediction
from laprasdp.sql.statements import split

_KINDS: dict[str, Any] = {
    "bool": bool,
    "int": int,
    "float": (int, float),
    "int | None": (int, str),
    "float | None": (int, float),
    "WarmUp | int": (int, str),
    "Iterable[str | QueryShape] | Mapping[str, float]": (list, dict),
}
"""What a key holds, by the annotation of its field; texts otherwise."""


def read_stream(section: Section, folder: Path) -> Stream:
    """
    The stream from its section; a file of predictions or a log is read by `with_forecast`.

    Raises
    ------
    ConfigError
        A key is unknown or wrong, or a file of statements cannot be read.
    """
    own = [one for one in fields(Stream) if one.name not in ("predictions", "reading")]
    paper = fields(Reading)
    section.only(*(one.name for one in (*own, *paper)), "predictions", *KEYS)
    read_count(section)
    found = {one.name: _take(section, one) for one in own if one.name in section}
    if "horizon" in found:
        found["horizon"] = _horizon(section, found["horizon"])
    reading = {one.name: _take(section, one) for one in paper if one.name in section}
    predictions = section.take("predictions", (list, str), [])
    found["reading"] = placed(section.where, lambda: Reading(**reading))
    if not is_forecast(predictions):
        found["predictions"] = _predictions(section.where, predictions, folder)
    stream: Stream = placed(section.where, lambda: Stream(**found))
    return stream


def with_forecast(section: Section, stream: Stream, domain: Domain, name: str, folder: Path) -> Stream:
    """The stream with what a file of predictions or a log foretells, if its section names one."""
    forecast = read_expected(section, domain, name, stream.horizon, folder)
    if forecast is None:
        return stream
    return replace(
        stream,
        predictions=tuple(replace(one, place=f"{section.where}: {one.text}") for one in forecast.predictions),
        overlap=forecast.overlap if stream.overlap is None else stream.overlap,
        shapes=stream.shapes if "shapes" in section else forecast.shapes,
    )


def _take(section: Section, field: Any) -> Any:
    return section.take(field.name, _KINDS.get(field.type, str))


def _horizon(section: Section, given: int | str) -> int | None:
    if given == "unknown":
        return None
    if isinstance(given, str) or given < 1:
        raise ConfigError(
            f'{section.where}: horizon is a whole number of at least 1, or "unknown", not {given!r}'
        )
    return given


def _predictions(where: str, given: list[Any] | str, folder: Path) -> tuple[Prediction, ...]:
    if isinstance(given, list):
        for text in given:
            if not isinstance(text, str):
                raise ConfigError(f"{where}: predictions are texts in quotes, not {text!r}")
        return tuple(Prediction(t, place=f"{where}: prediction {i}") for i, t in enumerate(given, start=1))
    path, found = folder / given, []
    try:
        with open(path, encoding="utf-8-sig") as lines:
            for fragment in split(lines):
                if fragment.error:
                    raise ConfigError(f"{path}, line {fragment.line}: {fragment.error}")
                found.append(Prediction(fragment.text, place=f"{path}, line {fragment.line}"))
    except OSError as error:
        raise ConfigError(
            f"{where}: predictions: {path}: {(error.strerror or 'cannot be read').lower()}"
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{where}: predictions: {path} is not UTF-8 text") from None
    return tuple(found)
