"""From a text to a value of its declared attribute: fixed rules, each text by itself."""

from __future__ import annotations

from sqlglot import exp

from laprasdp.data.dialect import Dialect
from laprasdp.data.words import word
from laprasdp.queries.attribute import Attribute, Bins, Booleans, Categories, Dates, Integers, Reals

_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_ISO = (
    "([0-9]{4}-[0-9]{2}-[0-9]{2})"
    "([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]+)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)


def text_type(attribute: Attribute) -> str:
    """
    The type of a column of texts, which its attribute alone decides.

    Examples
    --------
    >>> text_type(Integers(0, 9)), text_type(Integers(2**64, 2**64 + 9)), text_type(Bins([0, 0.5]))
    ('BIGINT', 'HUGEINT', 'DOUBLE')
    """
    match attribute:
        case Integers():
            return _whole_type(attribute.min, attribute.max)
        case Bins(whole=True):
            return _whole_type(int(attribute.edges[0]), int(attribute.edges[-1]))
        case Bins() | Reals():
            return "DOUBLE"
        case Dates():
            return "DATE"
        case Booleans():
            return "BOOLEAN"
    assert isinstance(attribute, Categories)
    return "VARCHAR"


def parsed(text: exp.Expr, attribute: Attribute, dialect: Dialect) -> exp.Expr:
    """
    The value that a text spells, of type `text_type`, in words; NULL if it spells none.

    Spaces around a number, a date or a truth value do not count.

    - whole numbers: digits after an optional sign, and zeros after a decimal point;
    - numbers: digits with an optional sign, fraction and exponent; the nearest double;
    - dates: ISO 8601, or `date_format`; a time of day after it is left out, and so is its zone: the date is
      the one that is written;
    - truth values: true, t, yes, y, 1 and false, f, no, n, 0, whatever the case;
    - texts: every one, byte by byte.
    """
    if isinstance(attribute, Categories):
        return text
    kind = text_type(attribute)
    if isinstance(attribute, Booleans):
        spelled = exp.Case(this=exp.Lower(this=exp.Trim(this=text.copy())))
        for true in _TRUE:
            spelled = spelled.when(exp.Literal.string(true), exp.true())
        for false in _FALSE:
            spelled = spelled.when(exp.Literal.string(false), exp.false())
        return spelled
    if isinstance(attribute, Dates):
        if dialect.date_format is None:
            begin = exp.Trim(this=text.copy(), position="LEADING")
            return _if(text, _ISO, exp.Left(this=begin, expression=exp.Literal.number(10)), kind)
        moment = word("moment", text, exp.Literal.string(dialect.date_format))
        return _if(text, dialect.date_pattern, moment, kind)
    point, plain = "[.]", text
    if dialect.decimal == ",":
        comma, full_stop = exp.Literal.string(","), exp.Literal.string(".")
        point, plain = ",", exp.Replace(this=text.copy(), expression=comma, replacement=full_stop)
    if kind == "DOUBLE":
        pattern = f"[+-]?([0-9]+({point}[0-9]*)?|{point}[0-9]+)([eE][+-]?[0-9]+)?"
        return _if(text, pattern, plain, kind)
    return _if(text, f"[+-]?[0-9]+({point}0*)?", plain, kind)


def _whole_type(low: int, high: int) -> str:
    return "BIGINT" if low >= -(2**63) and high < 2**63 else "HUGEINT"


def _if(text: exp.Expr, pattern: str, value: exp.Expr, kind: str) -> exp.Expr:
    """The value as its type, where the text without spaces around it has the pattern."""
    fits = word("matches", text, exp.Literal.string(f" *(?:{pattern}) *"))
    return exp.case().when(fits, word("read", value, exp.DataType.build(kind, dialect="duckdb")))
