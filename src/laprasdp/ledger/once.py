"""What was charged whole and is drawn part by part: every part is of what was charged, and is drawn once."""

from __future__ import annotations

from dataclasses import replace

from laprasdp.errors import DomainError, LedgerError
from laprasdp.record.entries import Entry, Release
from laprasdp.strategy.drawn import Drawn, DrawnPart
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.measurement import Measurement


class Once:
    """
    The parts of one release that were drawn so far.

    Notes
    -----
    **Privacy.**  Whoever measures asks `check` before the data is read, and `record` keeps what was drawn.
    Guarantees that no noise is drawn twice for the same part, and none for what was not charged.
    """

    def __init__(self) -> None:
        self._whole: Marginals | None = None
        self._drawn: frozenset[DrawnPart] = frozenset()

    def check(self, measurement: Measurement) -> None:
        """
        Whether this may be measured after what was recorded.

        Raises
        ------
        LedgerError
            It cannot: a part was drawn before, or is none of what was charged.
        """
        self._known(measurement)

    def known(self, entry: Entry) -> Entry:
        """
        The entry, whose measurement knows what it is a part of.

        Raises
        ------
        LedgerError
            It is none.
        """
        if not isinstance(entry, Release):
            return entry
        known = self._known(entry.measurement)
        return entry if known is entry.measurement else replace(entry, measurement=known)

    def record(self, entry: Entry) -> None:
        """Go past an entry that `known` gave."""
        if not isinstance(entry, Release):
            return
        measurement = entry.measurement
        if isinstance(measurement, Marginals) and measurement.long:
            self._whole = measurement
        elif isinstance(measurement, Drawn):
            self._drawn |= frozenset(measurement.parts)

    def _known(self, measurement: Measurement) -> Measurement:
        if isinstance(measurement, Marginals) and measurement.long and self._whole is not None:
            raise LedgerError("a release that is drawn part by part was charged before")
        if not isinstance(measurement, Drawn):
            return measurement
        if self._whole is None:
            raise LedgerError("nothing was charged that it is a part of")
        if self._drawn.intersection(measurement.parts):
            raise LedgerError("a part of it was drawn before")
        try:
            found = Drawn.of(self._whole, measurement.parts)
        except DomainError as error:
            raise LedgerError(str(error)) from None
        if (found.bits, found.law, found.steps) != (measurement.bits, measurement.law, measurement.steps):
            raise LedgerError("it has another grid or noise than what was charged")
        return found
