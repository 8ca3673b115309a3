"""Objects of a state as plain data and back: JSON, and behind it the numbers of arrays.

Only what is named here is written or made; nothing that is read can name code.  Objects that two others
share are shared again.  Parts that the reader has already are only referred to.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from laprasdp.belief.basis import Basis, Sparse
from laprasdp.belief.dense import DenseBelief
from laprasdp.belief.direct import Direct
from laprasdp.belief.factored import FactoredBelief
from laprasdp.belief.grouped import GroupedBelief
from laprasdp.ledger.once import Once
from laprasdp.pacing.pacing import Reading, Reserve, Smooth, Static
from laprasdp.pacing.split import Pools
from laprasdp.policy.policy import lasting
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.filter import BasicFilter, GaussianFilter
from laprasdp.queries.domain import Domain
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.record.estimate import Estimate
from laprasdp.record.format import read_measurement, write_measurement
from laprasdp.record.functions import read_queries, read_query, write_queries, write_query
from laprasdp.strategy.group_block import GroupBlock
from laprasdp.strategy.measurement import Measurement
from laprasdp.strategy.span import Span

_WRITTEN: dict[str, type] = {
    one.__name__: one
    for one in (
        Basis, BasicFilter, Budget, DenseBelief, Direct, FactoredBelief, GaussianFilter, GroupBlock, Once,
        Pools, Reading, Reserve, Smooth, Span, Sparse, Static,
    )
}  # fmt: skip
_MADE: dict[str, tuple[Callable[[Any], Any], str, frozenset[str]]] = {
    "GroupedBelief": (GroupedBelief, "prior", frozenset({"_roots", "_views"}))
}
"""Made anew from one attribute, as it makes these others from it; the rest is written."""
_CACHES = {("GaussianFilter", "_looked"), ("Span", "_inverse")}
"""Attributes that are worked out again where they are None."""
_COLUMNS = ("value", "variance", "parts", "fitted")  # NaN where there is none
_LENGTH = 8  # bytes in front, of how long the JSON is
_Parts = Sequence[object]


def write_plain(value: Any, given: _Parts, domain: Domain) -> bytes:
    """
    Plain data for an object.

    Parameters
    ----------
    value : object
        Made of what is named here.
    given : sequence of object
        Parts that are not written, for whoever reads has them.
    domain : Domain

    Raises
    ------
    TypeError
        It holds something else.
    """
    writer = _Writer(given, domain)
    form = json.dumps(writer.write(value), separators=(",", ":")).encode()
    return b"".join([len(form).to_bytes(_LENGTH, "little"), form, *writer.arrays])


def read_plain(data: bytes, given: _Parts, domain: Domain) -> Any:
    """
    The object of `write_plain`.

    Raises
    ------
    ValueError, LookupError, TypeError, LaprasError
        It is none.
    """
    end = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
    return _Reader(memoryview(data)[end:], given, domain).read(json.loads(data[_LENGTH:end]))


class _Writer:
    def __init__(self, given: _Parts, domain: Domain) -> None:
        self._given = {id(part): place for place, part in enumerate(given)}
        self._domain = domain
        self._seen: dict[int, tuple[int, Any]] = {}  # number, and the object, which is kept alive
        self.arrays: list[bytes] = []
        self._size = 0

    def write(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if type(value) in (int, float):
            return value
        if id(value) in self._given:
            return ["given", self._given[id(value)]]
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, Domain):
            if value != self._domain:
                raise TypeError("it is of another domain")
            return ["domain"]
        if type(value) is Fraction:
            return ["fraction", value.numerator, value.denominator]
        if type(value) in (list, tuple, frozenset):
            return [type(value).__name__, list(map(self.write, value))]
        if type(value) is dict:
            return self._dict(value)
        return self._shared(value)

    def _shared(self, value: Any) -> Any:
        if id(value) in self._seen:
            return ["seen", self._seen[id(value)][0]]
        number = len(self._seen)
        self._seen[id(value)] = number, value
        return ["new", number, *self._new(value)]

    def _new(self, value: Any) -> list[Any]:
        name = type(value).__name__
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, Query):
            return ["query", write_query(value)]
        if isinstance(value, Groups):
            return ["groups", write_queries(value)]
        if isinstance(value, Measurement):
            return ["measurement", write_measurement(value)]
        if type(value) is _WRITTEN.get(name):
            if isinstance(value, tuple):
                return ["fields", name, list(map(self.write, value))]
            kept = {key: None if (name, key) in _CACHES else each for key, each in lasting(value).items()}
            return ["object", name, self.write(kept)]
        if name in _MADE and type(value) is _MADE[name][0]:
            _, source, anew = _MADE[name]
            kept = {key: each for key, each in lasting(value).items() if key not in {source, *anew}}
            return ["made", name, self.write(getattr(value, source)), self.write(kept)]
        raise TypeError(f"{name} is no part of a state that is written")

    def _array(self, value: Any) -> list[Any]:
        if value.dtype.kind == "O":
            return ["integers", list(value.shape), [int(one) for one in value.reshape(-1)]]
        if value.dtype.kind not in "biuf":
            raise TypeError(f"an array of {value.dtype} is no part of a state that is written")
        data = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).tobytes()
        place, self._size = self._size, self._size + len(data)
        self.arrays.append(data)
        return ["array", value.dtype.newbyteorder("<").str, list(value.shape), place]

    def _dict(self, value: dict[Any, Any]) -> Any:
        if value and all(type(one) is Estimate for one in value.values()):
            found = value.values()
            numbers = ([getattr(one, name) for one in found] for name in _COLUMNS)
            columns = [self._array(np.array(column, dtype=float)) for column in numbers]
            words = [[one.source for one in found], [one.law for one in found]]
            return ["estimates", list(value), columns, words]
        return ["dict", [[self.write(key), self.write(each)] for key, each in value.items()]]


class _Reader:
    def __init__(self, arrays: memoryview, given: _Parts, domain: Domain) -> None:
        self._arrays, self._given, self._domain = arrays, given, domain
        self._seen: dict[int, Any] = {}

    def read(self, form: Any) -> Any:
        if not isinstance(form, list):
            return form
        kind, *rest = form
        if kind == "new":
            number, *what = rest
            found = self._seen[number] = self._new(*what)
            return found
        return self._PLAIN[kind](self, *rest)

    def _new(self, kind: str, *rest: Any) -> Any:
        return self._NEW[kind](self, *rest)

    def _array(self, kind: str, dtype: str, shape: list[int], place: int) -> Any:
        count = math.prod(shape)
        if not count:
            return np.zeros(shape, np.dtype(dtype))
        return np.frombuffer(self._arrays, np.dtype(dtype), count, place).reshape(shape).copy()

    def _integers(self, shape: list[int], values: list[int]) -> Any:
        return np.array(values, dtype=object).reshape(shape)

    def _estimates(self, keys: list[str], columns: list[Any], words: list[list[Any]]) -> Any:
        values, variances, parts, fitted = (self._array(*column).tolist() for column in columns)
        shown = (None if math.isnan(one) else one for one in fitted)
        made = map(Estimate, values, variances, *words, parts, shown)
        return dict(zip(keys, made, strict=True))

    def _object(self, name: str, kept: Any) -> Any:
        found: Any = object.__new__(_WRITTEN[name])
        for key, each in self.read(kept).items():
            object.__setattr__(found, key, each)
        return found

    def _made(self, name: str, source: Any, kept: Any) -> Any:
        found = _MADE[name][0](self.read(source))
        vars(found).update(self.read(kept))
        return found

    _PLAIN: Mapping[str, Callable[..., Any]] = {
        "given": lambda self, place: self._given[place],
        "domain": lambda self: self._domain,
        "fraction": lambda self, above, below: Fraction(above, below),
        "seen": lambda self, number: self._seen[number],
        "list": lambda self, parts: list(map(self.read, parts)),
        "tuple": lambda self, parts: tuple(map(self.read, parts)),
        "frozenset": lambda self, parts: frozenset(map(self.read, parts)),
        "dict": lambda self, pairs: {self.read(key): self.read(each) for key, each in pairs},
        "estimates": _estimates,
    }
    _NEW: Mapping[str, Callable[..., Any]] = {
        "array": lambda self, *rest: self._array("array", *rest),
        "integers": _integers,
        "query": lambda self, form: read_query(form, self._domain),
        "groups": lambda self, form: read_queries(form, self._domain),
        "measurement": lambda self, form: read_measurement(form, self._domain),
        "fields": lambda self, name, parts: _WRITTEN[name](*map(self.read, parts)),
        "object": _object,
        "made": _made,
    }
