"""Labels of the levels of one attribute, kept as runs of equal labels where those are far fewer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]

LONG = 4_096
"""Levels above which labels are kept as runs, if there are few of them."""

_MANY = 16  # levels a run, on average, from which on runs are few


@dataclass(frozen=True, eq=False)
class Runs:
    """
    One label for each of some levels.

    Attributes
    ----------
    size : int
        Levels.
    starts : (k,) int64 array
        Where each run begins, ascending from 0.
    values : (k,) int array
        Its label.

    Examples
    --------
    >>> runs = runs_of(np.array([3, 3, 3, 5, 5]))
    >>> runs.starts.tolist(), runs.values.tolist(), runs.array().tolist()
    ([0, 3], [3, 5], [3, 3, 3, 5, 5])
    """

    size: int
    starts: npt.NDArray[np.int64]
    values: AnyArray

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """(k,) levels of each run."""
        return np.diff(self.starts, append=self.size)

    def array(self) -> AnyArray:
        """(size,) labels, read-only."""
        labels = np.repeat(self.values, self.lengths)
        labels.setflags(write=False)
        return labels

    def at(self, levels: AnyArray) -> AnyArray:
        """Labels of some levels."""
        return np.asarray(self.values[np.searchsorted(self.starts, levels, side="right") - 1])


Labels = AnyArray | Runs


def runs_of(labels: Labels) -> Runs:
    """The runs of labels, none beside its equal."""
    if isinstance(labels, Runs):
        kept = np.flatnonzero(np.append(True, labels.values[1:] != labels.values[:-1]))
        return Runs(labels.size, labels.starts[kept], labels.values[kept])
    starts = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))
    return Runs(len(labels), starts, labels[starts])


def packed(labels: Labels) -> Labels:
    """The same labels as runs where they are long and their runs are few."""
    if isinstance(labels, Runs) or len(labels) <= LONG:
        return labels
    found = runs_of(labels)
    return found if _MANY * len(found.starts) <= found.size else labels


def unpacked(labels: Labels) -> AnyArray:
    """The same labels as an array."""
    return labels.array() if isinstance(labels, Runs) else labels


def together(each: Sequence[Labels]) -> tuple[npt.NDArray[np.int64] | None, list[AnyArray]]:
    """
    Several labellings of the same levels, on runs where none of them changes.

    Returns
    -------
    starts : (k,) int64 array or None
        Where the runs begin; None where every level is its own.
    labels : list of (k,) int arrays
    """
    if not any(isinstance(labels, Runs) for labels in each):
        return None, [unpacked(labels) for labels in each]
    if all(isinstance(labels, Runs) for labels in each):
        starts = np.unique(np.concatenate([runs.starts for runs in each if isinstance(runs, Runs)]))
        return starts, [runs.at(starts) for runs in each if isinstance(runs, Runs)]
    return None, [unpacked(labels) for labels in each]


def labels_at(labels: Labels, levels: AnyArray) -> AnyArray:
    """The labels of some levels."""
    return labels.at(levels) if isinstance(labels, Runs) else np.asarray(labels[levels])


def relabelled(labels: Labels, names: AnyArray) -> Labels:
    """Each level with the name of its class."""
    if isinstance(labels, Runs):
        return Runs(labels.size, labels.starts, names[labels.values])
    return np.asarray(names[labels])


def class_sizes(labels: Labels, classes: int = 0) -> npt.NDArray[np.int64]:
    """Levels of each class; at least so many classes."""
    if isinstance(labels, Runs):
        return np.bincount(labels.values, labels.lengths, classes).astype(np.int64)  # exact below 2^53
    return np.bincount(labels, minlength=classes)


def levels_of(labels: Labels) -> int:
    """How many levels have a label."""
    return labels.size if isinstance(labels, Runs) else len(labels)


def narrowed(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same labels in as few bytes as they need."""
    return labels.astype(np.uint8 if labels.max() < 256 else np.uint32)


@lru_cache(maxsize=64)
def every_level(levels: int) -> npt.NDArray[np.intp]:
    """Labels that tell all levels apart, the same array each time: what is refined by it costs little."""
    labels = np.arange(levels)
    labels.setflags(write=False)
    return labels


def first_seen(
    labels: npt.NDArray[Any],
) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """
    The distinct labels in order of appearance, where each appears first, and all labels so renumbered.

    Parameters
    ----------
    labels : (levels,) int array
        Of at least one level.

    Examples
    --------
    >>> [part.tolist() for part in first_seen(np.array([7, 2, 7, 9]))]
    [[7, 2, 9], [0, 1, 3], [0, 1, 0, 2]]
    """
    names, levels = labels, np.arange(len(labels))
    if labels.min() < 0 or labels.max() > 4 * len(labels) + 64:  # too sparse for a table of them all
        names = np.unique(labels, return_inverse=True)[1]
    table = np.empty(int(names.max()) + 1, dtype=np.intp)
    table[names[::-1]] = levels[::-1]  # of several levels, the one assigned last stays
    places = np.flatnonzero(table[names] == levels)
    table[names[places]] = levels[: len(places)]
    return labels[places], places, table[names]


def refined(
    a: Labels | None, b: Labels | None
) -> tuple[Labels, int, npt.NDArray[Any] | None, npt.NDArray[Any] | None]:
    """Common refinement of two groupings of the same levels, its classes, and each one's class in both."""
    if a is None or b is None:
        labels = a if a is not None else b
        assert labels is not None
        classes = np.arange(int((labels.values if isinstance(labels, Runs) else labels).max()) + 1)
        return labels, len(classes), classes if a is not None else None, classes if b is not None else None
    starts, (left, right) = together([a, b])
    if starts is None and len(left) <= LONG and left is every_level(len(left)):
        return left, len(left), left, right
    if starts is None and (first := _first_levels(left)) is not None:
        told = right[first]
        if len(first) == len(left) <= LONG:
            return every_level(len(left)), len(left), every_level(len(left)), told
        if np.array_equal(told[left], right):  # b tells nothing apart that a does not
            return a, len(first), np.arange(len(first)), told
    width = int(right.max()) + 1
    pairs, _, joint = first_seen(left.astype(np.int64) * width + right)
    found: Labels = narrowed(joint)
    if starts is not None:
        found = Runs(levels_of(a), starts, narrowed(joint))
    return found, len(pairs), pairs // width, pairs % width


def _first_levels(labels: npt.NDArray[Any]) -> npt.NDArray[np.intp] | None:
    """Where each class appears first, if they are numbered in that order."""
    first = np.full(int(labels.max()) + 1, -1)
    first[labels[::-1]] = np.arange(len(labels))[::-1]
    return first if first[0] == 0 and (first[1:] > first[:-1]).all() else None
