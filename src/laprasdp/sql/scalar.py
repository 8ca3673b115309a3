"""Which functions and operators a statement may use: those whose value hangs on their arguments alone."""

from __future__ import annotations

import re
from collections.abc import Callable

from laprasdp.errors import UnsupportedQuery
from laprasdp.scratch import Tree, children
from laprasdp.sql.predicate import nearest
from laprasdp.sql.syntax import clip

FUNCTIONS = frozenset(
    (
        *(
            "+",
            "-",
            "*",
            "/",
            "//",
            "%",
            "**",
            "^",
            "&",
            "|",
            "<<",
            ">>",
            "xor",
            "||",
            "~",
            "^@",
            "!__postfix",
        ),
        *("~~", "!~~", "~~*", "!~~*", "~~~", "like_escape", "not_like_escape", "ilike_escape"),
        *("not_ilike_escape", "regexp_matches", "regexp_full_match", "regexp_extract", "regexp_replace"),
        *("abs", "ceil", "ceiling", "floor", "round", "trunc", "sign", "mod", "even", "pow", "power", "sqrt"),
        *("cbrt", "exp", "ln", "log", "log2", "log10", "greatest", "least", "gcd", "lcm", "isnan", "isinf"),
        *("isfinite", "pi", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "radians", "degrees"),
        *("add", "subtract", "multiply", "divide", "nullif", "ifnull", "row", "constant_or_null"),
        *("lower", "lcase", "upper", "ucase", "substr", "substring", "left", "right", "length", "len"),
        *("strlen", "char_length", "character_length", "trim", "ltrim", "rtrim", "replace", "reverse"),
        *("concat", "concat_ws", "contains", "starts_with", "prefix", "ends_with", "suffix", "instr"),
        *(
            "position",
            "strpos",
            "translate",
            "ascii",
            "ord",
            "unicode",
            "chr",
            "strip_accents",
            "lpad",
            "rpad",
            "format",
            "printf",
        ),
        *(
            "date_add",
            "date_trunc",
            "datetrunc",
            "date_part",
            "datepart",
            "date_diff",
            "datediff",
            "date_sub",
            "datesub",
        ),
        *("strftime", "year", "quarter", "month", "week", "weekofyear", "day", "dayofmonth", "dayofweek"),
        *("dayofyear", "weekday", "isodow", "isoyear", "yearweek", "dayname", "monthname", "decade"),
        *("century", "millennium", "era", "julian", "last_day", "make_date", "time_bucket", "epoch", "hour"),
        *("minute", "second", "to_days", "to_weeks", "to_months", "to_quarters", "to_years", "to_hours"),
        *("to_minutes", "to_seconds", "strptime", "try_strptime"),
    )
)
_WIDTHS = {"lpad": 1, "rpad": 1, "format": 0, "printf": 0}
"""Functions that lengthen a text by what a constant says, and its place among their arguments."""
_FORMAT = 200
"""Characters of a format at most."""
_JOINS = frozenset(("||", "concat", "concat_ws"))
_ENDLESS = 2**62
CLOCK = frozenset(
    ("now", "today", "current_date", "current_time", "current_timestamp", "get_current_timestamp")
)
CHANCE = frozenset(("random", "setseed", "uuid", "gen_random_uuid", "uuidv4", "uuidv7"))
CLASSES = frozenset(
    ("COLUMN_REF", "CONSTANT", "FUNCTION", "COMPARISON", "CONJUNCTION", "OPERATOR", "BETWEEN", "CASE", "CAST")
)
_OPERATORS = frozenset(
    (
        *("OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_COALESCE", "OPERATOR_NULLIF"),
        *("COMPARE_IN", "COMPARE_NOT_IN"),
    )
)
_TYPES = frozenset(
    (
        *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT"),
        *("UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "DATE", "TIMESTAMP"),
        *("INTERVAL", "NULL", "INTEGER_LITERAL", "STRING_LITERAL", "TIMESTAMP_S", "TIMESTAMP_MS", "TIME"),
    )
)


_DAILY = frozenset(
    (
        *("year", "quarter", "month", "week", "weekofyear", "day", "dayofmonth", "dayofweek", "dayofyear"),
        *("weekday", "isodow", "isoyear", "yearweek", "dayname", "monthname", "decade", "century"),
        *("millennium", "era", "last_day"),
    )
)
"""Functions of an instant that are functions of its day."""
_PARTED = frozenset(("date_part", "datepart", "date_trunc", "datetrunc"))
_PARTS = frozenset(
    (
        *("year", "years", "y", "yr", "yrs", "quarter", "quarters", "month", "months", "mon", "mons"),
        *("week", "weeks", "w", "day", "days", "d", "dayofmonth", "dow", "dayofweek", "weekday", "isodow"),
        *("doy", "dayofyear", "isoyear", "yearweek", "decade", "decades", "century", "centuries"),
        *("millennium", "millennia", "era"),
    )
)
"""Parts of an instant that are parts of its day."""
_DATED = re.compile(r"(%-?[aAwudbBmyYGVUWjx]|%%|[^%])*")
"""Formats that show the day alone."""


def daily(node: Tree) -> int | None:
    """
    Which argument of a function may be an instant of which only the day counts; None if there is none.

    Parameters
    ----------
    node : Tree
        A function.
    """
    name, parts = str(node["function_name"]).lower(), node["children"]
    told = [_constant(part) for part in parts]
    if name in _DAILY and len(parts) == 1:
        return 0
    if name in _PARTED and len(parts) == 2 and (told[0] or "").lower() in _PARTS:
        return 1
    if name == "strftime" and len(parts) == 2 and told[1] is not None and _DATED.fullmatch(told[1]):
        return 0
    return None


def check_scalar(node: Tree, shows: Callable[[], str]) -> None:
    """
    Refuse a node, not what is below it, that is no function of its parts alone.

    Parameters
    ----------
    node : Tree
    shows : callable
        What a message calls it.
    """
    kind, what = node["class"], node["type"]
    if kind == "STAR":
        raise UnsupportedQuery(f"{shows()} is not supported: rows are private; name aggregates and keys")
    if kind == "WINDOW":
        raise UnsupportedQuery(f"{shows()}: a window function over rows is not supported; use GROUP BY")
    if kind not in CLASSES:
        raise UnsupportedQuery(f"{shows()} is not supported in an expression; use functions of columns")
    if kind == "FUNCTION":
        name = str(node["function_name"]).lower()
        if name not in FUNCTIONS:
            raise unknown_function(name)
        if node.get("distinct") or node.get("filter") or (node.get("order_bys") or {}).get("orders"):
            raise UnsupportedQuery(f"{shows()}: DISTINCT, FILTER and ORDER BY belong to aggregates")
    if kind == "OPERATOR" and what not in _OPERATORS:
        raise UnsupportedQuery(f"{shows()} is not supported in an expression; use functions of columns")
    if kind == "CAST" and str(node["cast_type"]["id"]).upper() not in _TYPES:
        raise UnsupportedQuery(
            f"{shows()}: a cast to this type is not supported; cast to a number, text or date"
        )


def growth(node: Tree, *, inside: bool = False) -> int:
    """
    How many times longer than what it begins with a text can become, whatever is put into what.

    The product over everything in a tree, so that it holds for columns of subqueries too.

    Parameters
    ----------
    node : Tree
    inside : bool
        The node is a part of a concatenation, which is looked at as a whole.
    """
    name = str(node.get("function_name", "")).lower() if node.get("class") == "FUNCTION" else ""
    joins, found = name in _JOINS, 1
    if joins and not inside:
        found = max(1, _leaves(node))
    elif name in ("replace", "regexp_replace"):
        parts = [part for _, _, part in children(node)][1:3]
        old, new = (_constant(part) for part in parts) if len(parts) == 2 else (None, None)
        if old is None or new is None:
            return _ENDLESS
        if name == "regexp_replace" or len(new) > len(old):
            found = 2 * (len(new) + 1)  # in the place of all that is found, and once between all letters
    elif name in _WIDTHS:
        found = _width(node, _WIDTHS[name])
    for _, _, part in children(node):
        found = min(found * growth(part, inside=joins), _ENDLESS)
    return found


def _width(node: Tree, place: int) -> int:
    """What a function adds that is given a width as a number, or in a format."""
    parts = [part for _, _, part in children(node)]
    given = _constant(parts[place]) if place < len(parts) else None
    if given is None or len(given) > _FORMAT or "*" in given or re.search(r"\{[^}]*\{", given):
        return _ENDLESS
    return len(parts) * len(given) + sum(map(int, re.findall(r"\d+", given))) + 1


def _leaves(node: Tree) -> int:
    """Parts of a concatenation that are no constants."""
    if node.get("class") == "FUNCTION" and str(node["function_name"]).lower() in _JOINS:
        return sum(_leaves(part) for _, _, part in children(node))
    return 0 if _constant(node) is not None else 1


def _constant(node: Tree) -> str | None:
    """The text of a constant."""
    if node.get("class") != "CONSTANT" or node["value"].get("is_null"):
        return None
    return str(node["value"].get("value", ""))


def unknown_function(name: str) -> UnsupportedQuery:
    """The refusal of a function that is not listed."""
    if name in CLOCK:
        return UnsupportedQuery(f"{clip(name)} hangs on the clock, not on a row; write the date itself")
    if name in CHANCE:
        return UnsupportedQuery(f"{clip(name)} is a function of chance; leave it out, or order by a key")
    near = nearest(name, sorted(FUNCTIONS))
    hint = f"did you mean {near}?" if near else "the page 'What may be asked' lists those that are"
    return UnsupportedQuery(f"the function {clip(name)} is not supported here; {hint}")
