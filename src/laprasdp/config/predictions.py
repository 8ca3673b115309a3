"""Expected statements under [stream]: a file of predictions, or a log to learn them from."""

from __future__ import annotations

from pathlib import Path

from laprasdp.config.section import Section, placed
from laprasdp.errors import ConfigError
from laprasdp.predict.forecast import Forecast, make_forecast, read_forecast
from laprasdp.predict.log import read_log
from laprasdp.predict.mixture import Mixture
from laprasdp.queries.domain import Domain

HORIZON = 100  # where the settings leave it open
KEYS = ("log", "log_is", "prediction_count")


def read_expected(
    stream: Section, domain: Domain, name: str, horizon: int | None, folder: Path
) -> Forecast | None:
    """
    The forecast that `predictions = "….json"` or `log` stands for; None where there is neither.

    Raises
    ------
    ConfigError
        `log` has no `log_is`, or the file cannot be used; see `read_forecast` and `read_log`.
    """
    count = read_count(stream)
    predictions, log = stream.take("predictions", (list, str), None), stream.take("log", str, None)
    provenance = stream.take("log_is", str, None)
    if log is None and provenance is not None:
        raise ConfigError(f"{stream.where}: log_is is there, but no log")
    if log is not None:
        if predictions is not None:
            raise ConfigError(f"{stream.where}: give predictions or log, not both")
        lines = placed(stream.where, lambda: read_log(folder / log, domain, name, provenance=provenance))
        predictor = Mixture(horizon or HORIZON)
        predictor.fit(lines)
        return make_forecast(predictor, lines, horizon or HORIZON, count)
    if not is_forecast(predictions):
        return None
    found: Forecast = placed(stream.where, read_forecast, folder / predictions, domain, name)
    return found.stretched(horizon or found.horizon).top(count)


def is_forecast(predictions: object) -> bool:
    """Whether `predictions` names a file that `lapras predict fit` wrote, and no list of statements."""
    return isinstance(predictions, str) and predictions.lower().endswith(".json")


def read_count(stream: Section) -> int:
    """`prediction_count`, at least 1."""
    count: int = stream.take("prediction_count", int, 100)
    if count < 1:
        raise ConfigError(f"{stream.where}: prediction_count must be at least 1, not {count}")
    return count
