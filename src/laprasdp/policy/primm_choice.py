"""Which PRIMM a table is given, by what its settings tell; and which one a ledger was begun with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import DENSE_CELLS, MAX_CELLS, MAX_FACTORED, MAX_FACTORED_LEVELS
from laprasdp.policy.design import Design
from laprasdp.policy.design_factored import overall
from laprasdp.policy.design_product import FEW, HURT
from laprasdp.policy.policy import Policy
from laprasdp.policy.primm_dense import PrimmDense
from laprasdp.policy.primm_factored import PrimmFactored, factored
from laprasdp.policy.primm_product import PrimmProduct, played
from laprasdp.policy.setting import Setting
from laprasdp.privacy.filter import CellCharge
from laprasdp.record.entries import Entry, Release
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.measurement import Rows
from laprasdp.strategy.product_rows import ProductRows, fits_product

_MOST = 1.3
"""Times the error of Gaussian noise that a pure release on many cells may have, for any kind of query."""


def primm(setting: Setting) -> Policy:
    """
    PRIMM: over the cells of a small table, over queries on a larger one, or one pure release.

    Raises
    ------
    UnsupportedQuery
        A pure release is wanted of too many cells.
    """
    release, fits = setting.release, fits_product(setting.domain)
    if setting.domain.size <= DENSE_CELLS:
        return PrimmDense(setting)
    if release == "pure" and not fits:
        raise UnsupportedQuery(
            f"a pure release is for {MAX_FACTORED:,} cells at most, of attributes of "
            f"{MAX_FACTORED_LEVELS:,} levels"
        )
    if release == "gaussian" or not fits or (release != "pure" and setting.unit.max_rows > 1):
        return PrimmProduct(setting)  # counts of persons can be asked of it, too
    few = _some(setting)
    chosen = _unhurt(few, PrimmProduct(few))
    if few is setting:
        return chosen
    return (
        PrimmFactored(setting, chosen.strategy)
        if isinstance(chosen, PrimmFactored)
        else PrimmProduct(setting)
    )


def _some(setting: Setting) -> Setting:
    """With the most important predictions, so few that streams are played to what is designed for them."""
    if len(setting.predictions) <= FEW:
        return setting
    places = np.sort(np.argsort(-setting.importance, kind="stable")[:FEW]).tolist()
    return replace(
        setting,
        predictions=tuple(setting.predictions[place] for place in places),
        expected=tuple(setting.expected[place] for place in places) if setting.expected else (),
    )


def _unhurt(setting: Setting, gaussian: PrimmProduct) -> Policy:
    """
    One pure release, where it is better by `overall`, and for no kind much worse.

    Or where predictions, of which nobody knows how many come true, would hurt somebody without it; or where
    nothing else is wanted.
    """
    only = setting.release == "pure"
    play = played(setting, gaussian.design)
    alone = None
    if setting.predictions and setting.overlap is None:
        alone = primm(replace(setting, predictions=(), expected=()))
    before = alone if isinstance(alone, PrimmFactored) else None
    pure, ratios, shares = factored(setting, (gaussian, play), before)
    better = only or (ratios.max() <= _MOST and overall(ratios, shares) <= 1)
    if before is None:
        return pure if better else gaussian
    kinds = before.kinds()
    most = HURT * before.deviations(kinds)
    unhurt = bool((pure.deviations(kinds) <= most).all())
    if better and unhurt:
        return pure
    if not only and (np.array(list(map(play, kinds.values()))) <= most).all():
        return gaussian
    return pure if unhurt else PrimmFactored(setting, before.strategy)


def _as_released(measurement: Rows) -> Design:
    """What was released, as the design of a release of the same rows."""
    rows = np.array([query.vector() for query in measurement.queries]) / 2.0**measurement.bits
    even = np.eye(rows.shape[1])
    return Design(rows, 1.0, even, even, pure=True)


def heir(policy: Policy, entry: Entry) -> Policy:
    """The policy that learns an entry: itself, but where another version began the ledger otherwise."""
    if policy.name != "primm" or policy.drawn or not isinstance(entry, Release):
        return policy
    setting, measurement = policy.setting, entry.measurement
    if isinstance(measurement, ProductRows) and not isinstance(policy, PrimmFactored):
        return PrimmFactored(setting, measurement)
    if isinstance(measurement, Rows) and not isinstance(policy, PrimmDense):
        if setting.domain.size > MAX_CELLS:
            return policy
        pure = isinstance(entry.charge, CellCharge) and entry.charge.pure
        return PrimmDense(setting, _as_released(measurement) if pure else None)
    over_queries = isinstance(measurement, Marginals) and setting.domain.size > DENSE_CELLS
    return PrimmProduct(setting) if over_queries and not isinstance(policy, PrimmProduct) else policy
