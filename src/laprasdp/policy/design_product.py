r"""The design of PRIMM's releases on a table of many cells: what to measure before the stream, how strongly.

Backgrounds and the strategy of the predicted queries are designed once; only their shares of the budget are
compared, by the errors that they lead to for predicted queries and for typical others.  What the errors of
others are thought to be is corrected by what they are when such a stream is played.  No data is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.limits import MANY_PREDICTED
from laprasdp.policy.backgrounds import NARROW, backgrounds, query_shares
from laprasdp.policy.crowd import Crowd, crowd_of
from laprasdp.policy.kinds import ALIKE, kind_shares, kinds_of_query
from laprasdp.policy.outlook import Outlook, Shares, mean_over
from laprasdp.policy.setting import Setting
from laprasdp.queries.query import Query
from laprasdp.strategy.joint import Joint, design_joint, design_line
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.tree import SHORT

HURT = 1.27
"""Times the error without predictions, that a kind may have with them when played; any stream of it: 1.3."""

HURT_AROUND = 1.31
"""The same where most are measured around half of the total: less would leave predicted ones with more than
any query has without predictions.  All kinds are hurt alike then: twenty statements by 1.33."""

FEW = 300
"""Predictions up to which streams are played."""

_UNLIKELY = 1.2
"""Times the error of independent noise, that a kind which is not declared may have in the outlook."""

_UNPLAYED = 1.26  # the same of what is thought, on long attributes
_MOST = 0.75  # share of unpredicted queries that counts as most
_ABOVE = 1.05  # times the error of independent noise, likewise
_TYPICAL = 12  # queries of each kind that stand for it in the outlook
_PLAYED = 20  # queries of a stream that is played
_ROUNDS = 4  # shares that are played
_NEARLY = 0.98  # of what kinds may have, from which on no other shares are looked for
_REFUSED = 100.0  # times what it may have, that a query which is refused counts as
_GAP = 1e-2
_TRUST = 0.9  # share of predicted queries that their release is designed for, where it is not known
_BACKGROUND = (0.02, *(share / 20 for share in range(1, 20)))
_STREAM = (0.02, *(share / 40 for share in range(2, 40)))
_LEAST = 0.002  # share of the stream where nothing is expected to be measured
_UNKNOWN = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)  # overlaps that stand for an unknown one
_WIDER = 1.05  # how much better a background of more attributes has to be
_CLOSE = 1.02  # of the least hurt, where no shares keep the limit
_WORSE = 1.02  # times the least error that predicted queries may have within the limits
_MOVED = 0.5  # part of the stream's share that later batches bring to the predicted queries, if all are

Kinds = Mapping[str, Sequence[Query]]


@dataclass(frozen=True, eq=False)
class ProductDesign:
    """
    What to release first.

    Attributes
    ----------
    prior : Marginals
        The background release at its share.
    joint : Joint or None
        Strategy for the predicted queries; None where nothing is predicted, or more than
        `limits.MANY_PREDICTED`: they share what the background measures.
    shares : Shares
    kinds : mapping of str to tuple of Query
        Unpredicted queries that stand for all others, by kind.
    sharp, crowded : (k,) arrays
        For each of them, how much more than itself its best row tells; and the share of the stream that
        meets it in its most crowded cell, if all are of its kind.
    rows : tuple of k Query
        What each adds to a predicted one with nearby bounds, if that is little; else itself.
    apart : (k,) array
        The share of the stream that is thought to meet that.
    centred : (k,) bool array
        Whether it has no prior, and is measured around half of the total.
    crowd : Crowd
    query_shares : (k,) array or None
        The share of the stream that each of `typical` stands for, where shapes are declared.
    """

    prior: Marginals
    joint: Joint | None
    shares: Shares
    kinds: Mapping[str, tuple[Query, ...]]
    sharp: Floats
    crowded: Floats
    rows: tuple[Query, ...]
    apart: Floats
    centred: npt.NDArray[np.bool_]
    crowd: Crowd
    query_shares: Floats | None = None

    @property
    def typical(self) -> tuple[Query, ...]:
        """All of them."""
        return tuple(query for queries in self.kinds.values() for query in queries)


Player = Callable[[Setting, ProductDesign], Callable[[Sequence[Query]], float]]
"""What plays streams to a design: the mean deviation of each; infinite if a query is refused."""


def design_product(setting: Setting, played: Player, *, seed: int = 0) -> ProductDesign:
    """
    Design both releases and choose the shares.

    Parameters
    ----------
    setting : Setting
    played : callable
        What comes of a design, for each kind of query.
    seed : int
        Typical queries are drawn with it.

    Raises
    ------
    BudgetExhausted
        The budget is too small to measure even the number of rows.

    Notes
    -----
    The score is the mean, over the overlaps that are possible and all kinds of other queries, of the fourth
    power of the error against the best candidate's, so that none is given up.  Where the overlap is not
    known, no kind may have more than `HURT` times the error that it has without predictions, nor more than
    independent noise by 5%: shares that keep this in the outlook are played, which tells how far the outlook
    is wrong, up to four times.  On long attributes, and with more than `FEW` predictions, where this would
    take long, the outlook is believed.
    """
    many = len(setting.predictions) > MANY_PREDICTED
    if many:
        setting = _some(setting, np.random.default_rng([seed, 3]))
    every, others = (_drawn(setting, [seed, place]) for place in (0, 1))
    joint = _joint(setting) if setting.predictions and not many else None
    compared = _Compared(setting, joint, every, others, seed)
    if joint is None or setting.overlap is not None:
        return compared.design(compared.best(None))
    bare = replace(setting, predictions=(), expected=(), overlap=None)
    alone = _Compared(bare, None, _unlike(every), _unlike(others), seed)
    chosen = alone.best(None)
    whole, shares = alone.whole(chosen), compared.query_shares
    thought = Outlook(bare, whole, None, compared.kinds, compared.crowd, shares)
    errors = thought.others(alone.candidates[chosen][1], setting.length)
    independent = math.sqrt(setting.length / compared.power)
    if max(setting.domain.shape) > SHORT or len(setting.predictions) > FEW:  # to play a stream takes long
        limits = np.maximum(np.minimum(_UNPLAYED * errors, independent), errors)
        return compared.design(compared.best(compared.alike(limits)))
    hurt = HURT_AROUND if mean_over(thought.centred, shares) > _MOST else HURT
    allowed = _Allowed(others, compared.kinds, played(bare, alone.design(chosen)), hurt, independent)
    return compared.design(compared.unhurt(allowed, compared.alike(hurt * errors), played))


def _drawn(setting: Setting, seed: Sequence[int]) -> Kinds:
    """Queries of every kind; those of the kinds that need no predictions are the same without them."""
    rng = np.random.default_rng(seed)
    return kinds_of_query(
        setting.domain, setting.predictions, _PLAYED, rng, setting.importance, setting.families
    )


def _unlike(kinds: Kinds) -> Kinds:
    """The kinds that need no predictions."""
    return {kind: queries for kind, queries in kinds.items() if kind != ALIKE}


def _some(setting: Setting, rng: np.random.Generator) -> Setting:
    """So many predicted queries as stand for all: of each set of attributes one, others by importance."""
    first = {query.axes: place for place, query in reversed([*enumerate(setting.predictions)])}
    keys = rng.exponential(size=len(setting.predictions)) / np.maximum(setting.importance, 1e-300)
    keys[list(first.values())[:MANY_PREDICTED]] = 0.0
    kept = [setting.predictions[place] for place in np.sort(np.argsort(keys)[:MANY_PREDICTED]).tolist()]
    return replace(setting, predictions=tuple(kept), expected=())


def _joint(setting: Setting) -> Joint:
    """The strategy for the predicted queries; on one long attribute, also for others between their bounds."""
    overlap = _TRUST if setting.overlap is None else setting.overlap
    others = min(max(1 - overlap, _GAP) / max(overlap, _GAP), 1.0)
    line = design_line(setting.predictions, setting.importance, others, gap=_GAP)
    return line or design_joint(setting.predictions, setting.importance, gap=_GAP)


class _Allowed:
    """
    What unpredicted queries may have, by streams of each kind.

    Parameters
    ----------
    others, kinds : mapping of str to sequence of Query
        Those that are played, and by which a plan tells of each kind.
    alone : callable
        Plays a stream to the policy that nothing is predicted to.
    hurt : float
        Times what a kind has then, that it may have.
    independent : float
        Deviation of independent noise.
    """

    def __init__(
        self,
        others: Kinds,
        kinds: Kinds,
        alone: Callable[[Sequence[Query]], float],
        hurt: float,
        independent: float,
    ) -> None:
        self._streams = [(queries[:_PLAYED], kinds[kind]) for kind, queries in others.items()]
        self._alone, self._hurt, self._independent = cache(alone), hurt, independent

    def shares(self, played: Callable[[Sequence[Query]], float]) -> Floats:
        """(k,) mean error of each kind, of what it may be."""
        return np.array([self._share(streams, played) for streams in self._streams])

    def _share(self, streams: Sequence[Sequence[Query]], played: Callable[[Sequence[Query]], float]) -> float:
        before, after = (math.fsum(map(each, streams)) / len(streams) for each in (self._alone, played))
        if math.isinf(before):
            return 1.0  # what is refused without predictions, too, is not hurt
        return min(after / max(min(self._hurt * before, _ABOVE * self._independent), before), _REFUSED)


class _Compared:
    """
    Candidates, each a background and shares, and what comes of them.

    Parameters
    ----------
    setting : Setting
    joint : Joint or None
    every, others : mapping of str to sequence of Query
        Unpredicted queries by kind; where they meet is told by the others.
    seed : int
        Cells where they meet are drawn with it.
    """

    def __init__(self, setting: Setting, joint: Joint | None, every: Kinds, others: Kinds, seed: int) -> None:
        self._setting, self._joint = setting, joint
        self.kinds = kinds = {kind: tuple(queries[:_TYPICAL]) for kind, queries in every.items()}
        meeting, power = (
            [queries[:_TYPICAL] for queries in others.values()],
            1 if len(setting.domain) <= NARROW else 2,
        )
        declared = kind_shares(setting.domain, setting.families)
        asked = np.array([declared.get(kind, 0.0) for kind in kinds]) if declared else None
        self.crowd = crowd = crowd_of(meeting, np.random.default_rng([seed, 2]), power, asked)
        self.query_shares = query_shares(setting, kinds) if declared else None
        self._backgrounds = backgrounds(setting, every, shared=joint is None and bool(setting.predictions))
        self._whole = [background.at(1.0) for background in self._backgrounds]
        self._outlooks = [
            Outlook(setting, prior, joint, kinds, crowd, self.query_shares) for prior in self._whole
        ]
        self.power = self._outlooks[0].power
        known = setting.overlap if setting.predictions else 0.0
        overlaps = _UNKNOWN if known is None else (known,)
        grid = _grid(joint is not None, known)
        self.candidates = [(place, shares) for place in range(len(self._whole)) for shares in grid]
        table, own, errors = [], [], []
        for place, shares in self.candidates:
            outlook, row = self._outlooks[place], list[Floats]()
            free = outlook.deviations(shares)[: outlook.m]
            for overlap in overlaps:
                moved = _MOVED * overlap**2 * shares.stream if known is None else 0.0
                after = outlook.deviations(shares, moved)[: outlook.m] if moved else free
                rest = outlook.others(shares, (1 - overlap) * setting.length)
                row.append(overlap * float(setting.importance @ after) + (1 - overlap) * rest)
            table.append(np.concatenate(row))
            own.append(float(setting.importance @ free))
            errors.append(row[0])  # none of the stream is predicted, where that is not known
        ratios = (np.array(table) / np.min(table, axis=0)) ** 4
        wider = np.array([_WIDER**place for place, _ in self.candidates])
        self._predicted, self._others = np.array(own), np.array(errors)
        if asked is None:
            self._scores = ratios.mean(axis=1) * wider
            return
        most = self._others[:, asked == 0].max(axis=1, initial=0.0)
        unlikely = np.maximum(most / (_UNLIKELY * math.sqrt(setting.length / self.power)), 1.0)
        weights = np.tile(asked, len(overlaps)) / len(overlaps)
        self._scores = np.where(unlikely <= unlikely.min() * _CLOSE, ratios @ weights * wider, np.inf)

    def best(self, limits: Floats | None) -> int:
        """The candidate of the best score, within limits on the error of each kind, one row a background."""
        if limits is None:
            return int(np.argmin(self._scores))
        places = np.array([place for place, _ in self.candidates])
        hurt = (self._others / limits[places]).max(axis=1)
        allowed = hurt <= max(1.0, float(hurt.min()) * _CLOSE)
        allowed &= self._predicted <= _WORSE * self._predicted[allowed].min()
        return int(np.argmin(np.where(allowed, self._scores, np.inf)))

    def unhurt(self, allowed: _Allowed, thought: Floats, played: Player) -> int:
        """
        The candidate that is best for the predicted queries of those that keep the limits when played.

        Parameters
        ----------
        allowed : _Allowed
        thought : (b, k) array
            The most that each kind may have in the outlook, as far as is known before.
        played : callable
        """
        limits = thought.copy()
        hurt: dict[int, float] = {}
        for _ in range(_ROUNDS):
            chosen = self.best(limits)
            if chosen in hurt:
                break
            shares = allowed.shares(played(self._setting, self.design(chosen)))
            hurt[chosen] = float(shares.max())
            if _NEARLY <= hurt[chosen] <= 1:
                break
            limits[self.candidates[chosen][0]] = self._others[chosen] / shares
        holding = [place for place, worst in hurt.items() if worst <= 1]
        if holding:
            return min(holding, key=self._predicted.__getitem__)
        return min(hurt, key=hurt.__getitem__)

    def alike(self, limits: Floats) -> Floats:
        """(b, k) the same (k,) limits for each background."""
        return np.tile(limits, (len(self._outlooks), 1))

    def whole(self, chosen: int) -> Marginals:
        """The background of a candidate, if it had the whole budget."""
        return self._whole[self.candidates[chosen][0]]

    def design(self, chosen: int) -> ProductDesign:
        """A candidate as a design."""
        place, shares = self.candidates[chosen]
        outlook = self._outlooks[place]
        return ProductDesign(
            self._backgrounds[place].at(shares.background),
            self._joint,
            shares,
            self.kinds,
            outlook.sharp,
            outlook.crowded,
            outlook.rows,
            outlook.apart,
            outlook.centred,
            outlook.crowd,
            self.query_shares,
        )


def _grid(predicted: bool, overlap: float | None) -> list[Shares]:
    """Shares to compare."""
    found = []
    streams = (*_STREAM, _LEAST) if overlap == 1 else _STREAM
    for stream in streams:
        if not predicted or overlap == 0:
            found.append(Shares(1 - stream, 0.0, stream))
        if predicted:
            found += [Shares(b, 1 - b - stream, stream) for b in _BACKGROUND if b + stream < 0.995]
    return found
