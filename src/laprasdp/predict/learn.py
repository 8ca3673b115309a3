"""From a log to a forecast in one step, as `lapras.toml` asks for it."""

from __future__ import annotations

import os

from laprasdp.domain import Domain
from laprasdp.predict.forecast import Forecast, make_forecast
from laprasdp.predict.log import read_log
from laprasdp.predict.mixture import Mixture


def learn(
    path: str | os.PathLike[str],
    domain: Domain,
    table: str,
    provenance: str | None,
    horizon: int,
    count: int,
) -> Forecast:
    """
    The prediction set of `count` statements that a log supports.

    Raises
    ------
    ConfigError
        See `read_log`.
    """
    log = read_log(path, domain, table, provenance=provenance)
    predictor = Mixture(horizon)
    predictor.fit(log)
    return make_forecast(predictor, log, horizon, count)
