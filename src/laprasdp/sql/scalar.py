"""Which functions and operators a statement may use: those whose value hangs on their arguments alone."""

from __future__ import annotations

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
        ),
        *("date_trunc", "datetrunc", "date_part", "datepart", "date_diff", "datediff", "date_sub", "datesub"),
        *("strftime", "year", "quarter", "month", "week", "weekofyear", "day", "dayofmonth", "dayofweek"),
        *("dayofyear", "weekday", "isodow", "isoyear", "yearweek", "dayname", "monthname", "decade"),
        *("century", "millennium", "era", "julian", "last_day", "make_date", "time_bucket", "epoch", "hour"),
        *("minute", "second", "to_days", "to_weeks", "to_months", "to_quarters", "to_years", "to_hours"),
        *("to_minutes", "to_seconds", "strptime", "try_strptime"),
    )
)
_TEXTS = frozenset(("||", "concat", "concat_ws", "replace", "regexp_replace", "strftime"))  # may be longer
_NUMBER = 40  # characters of a number, a date or a truth value
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


def longest(node: Tree, column: Callable[[Tree], int]) -> int:
    """
    A bound on the characters of an expression's value, and of every value on the way to it.

    Parameters
    ----------
    node : Tree
    column : callable
        The bound of a column.
    """
    if node.get("class") == "COLUMN_REF":
        return column(node)
    if node.get("class") == "CONSTANT":
        return max(_NUMBER, len(str(node["value"].get("value", ""))))
    parts = [longest(part, column) for _, _, part in children(node)]
    name = str(node.get("function_name", "")).lower()
    if node.get("class") == "FUNCTION" and name in _TEXTS:
        if name in ("replace", "regexp_replace") and len(parts) >= 3:
            return 2 * (parts[0] + 1) * (parts[2] + 1)  # all that is found, and once between all letters
        return sum(parts) * (_NUMBER if name == "strftime" else 1)
    return max([_NUMBER, *parts])


def unknown_function(name: str) -> UnsupportedQuery:
    """The refusal of a function that is not listed."""
    near = nearest(name, sorted(FUNCTIONS))
    hint = f"did you mean {near}?" if near else "the page 'What may be asked' lists those that are"
    return UnsupportedQuery(f"the function {clip(name)} is not supported here; {hint}")
