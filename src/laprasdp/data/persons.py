"""Which rows of a person count: the first ones in the order of a keyed hash."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sqlglot import exp

from laprasdp.data.packed import Packed
from laprasdp.data.scan import Scan
from laprasdp.data.words import Spelling, spelled, word
from laprasdp.errors import DataError
from laprasdp.privacy.unit import ORDERS

_WORDS = {"md5-hex": "digest", "md5": "hash"}  # of `laprasdp.privacy.unit.ORDERS`


def first_rows(rows: exp.Select, scan: Scan, packed: Packed) -> exp.Select:
    """
    Keep at most `scan.most` rows of a person; with `scan.apart`, of a person in each period.

    Parameters
    ----------
    rows : select
        Rows in the domain: ``who`` (the person as a text, compared by its bytes) and the packed levels.
    scan : Scan
    packed : Packed
        The levels, perhaps behind other numbers that are the same for all rows of a person.

    Returns
    -------
    select
        The packed levels of the rows that count, in the words of `laprasdp.data.words`; with the number of
        the person, ``who``, where several may be of one.

    Notes
    -----
    **Privacy.**  What is kept of a person follows from that person's rows (with `apart`, those of one period)
    and the key.  Equal rows of a person are numbered, so each has its own hash and none of them is favoured;
    which of two equal rows has which number makes no difference to the counts.
    """
    levels, columns, apart = list(map(packed.number, scan.levels)), packed.columns, scan.apart
    equal = [exp.column(name) for name in ("who", *columns)]
    alike = exp.Order(expressions=[exp.Ordered(this=exp.column("who"))])  # any order will do
    copy = exp.Window(this=exp.RowNumber(), partition_by=equal, order=alike).as_("copy")
    counted = rows.select(copy)
    parts: list[exp.Expr] = [exp.column("who"), *levels, exp.column("copy")]
    within: list[exp.Expr] = [exp.column("who")]
    if apart is not None:
        start = _start(levels[apart[0]], apart[1])
        parts[1 + apart[0]] = exp.paren(levels[apart[0]] - start)
        within.append(start.copy())
    order = [
        word(_WORDS[scan.order], exp.Literal.string(scan.key), *parts),
        *[exp.column(name) for name in (*columns, "copy")],
    ]
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=within,
        order=exp.Order(expressions=[exp.Ordered(this=by) for by in order]),
    )
    people = [exp.column("who")] if "who" in scan.counted else []
    placed = exp.select(*columns, *people, place.as_("place")).from_(counted.subquery("c"))
    kept = exp.select(*columns).from_(placed.subquery("p")).where(exp.column("place") <= scan.most)
    return kept.select(*(word("number", one).as_("who") for one in people))


def cells_of(rows: exp.Select, scan: Scan, words: Spelling, *, packs: bool = True) -> exp.Select:
    """
    The occurring combinations of `scan.counted`, their levels packed, with the number of their ``rows``.

    With numbered persons a combination comes as often as it has rows, without their number, where to group
    them would make few fewer: whoever reads it adds them up.

    Parameters
    ----------
    rows : select
        The levels ``a0``, …, NULL outside the domain, and with persons ``who``, a text.
    scan : Scan
    words : mapping
        Of one engine.
    packs : bool
        Rows without persons are grouped by their packed levels, too, not by each level.

    Raises
    ------
    DataError
        The order of a person's rows is an old one, which DuckDB alone can say.

    Notes
    -----
    **Privacy.**  Assumes that a row's levels follow from that row alone.  Guarantees that a row outside the
    domain, or of no person where there are persons, counts nowhere, and at most `scan.most` rows of a person.
    """
    if scan.person is None and not packs:
        inside = [f"{level} IS NOT NULL" for level in scan.levels]
        cells = exp.select(*scan.levels, "COUNT(*) AS rows").from_("r").where(*inside)
        return cells.group_by(*scan.levels).with_("r", as_=rows)
    packed = Packed(scan.sizes)
    people = [] if scan.person is None else ["who"]
    inside = [f"{name} IS NOT NULL" for name in (*packed.columns, *people)]
    taken = exp.select(*packed.packed(), *people).from_("r").subquery("t")
    counted = exp.select("*").from_(taken).where(*inside)
    if scan.person is not None:
        if scan.order != ORDERS[0]:
            raise DataError(f"rows of persons in the order {scan.order} are read by DuckDB alone")
        counted = first_rows(counted, scan, packed)
    people = [name for name in scan.counted if name == "who"]
    by = [*packed.columns, *people]
    if people and scan.most <= math.prod(scan.sizes.values()):
        cells = exp.select(*by).from_(counted.subquery("k"))
    else:
        cells = exp.select(*by, "COUNT(*) AS rows").from_(counted.subquery("k")).group_by(*by)
    told = spelled(cells, words)
    assert isinstance(told, exp.Select)
    return told.with_("r", as_=rows)


def _start(level: exp.Expr, starts: Sequence[int]) -> exp.Expr:
    """The last of `starts` that is not above a level, by a balanced tree of comparisons."""
    if len(starts) == 1:
        return exp.Literal.number(starts[0])
    middle = len(starts) // 2
    below = level.copy() < exp.Literal.number(starts[middle])
    return exp.case().when(below, _start(level, starts[:middle])).else_(_start(level, starts[middle:]))
