"""From text to one SELECT of sqlglot, or a line that says what cannot be read; knows no domain."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from sqlglot import errors, exp, parse

from laprasdp.errors import QuerySyntaxError, UnsupportedQuery
from laprasdp.limits import MAX_DEPTH, MAX_JOINS, MAX_LENGTH, MAX_TOKENS
from laprasdp.sql.account import tokens, unaccounted
from laprasdp.sql.statements import lex

Node = Any  # a node of sqlglot, of any class
CAN_DO = "ask for COUNT(*) or SUM(…) FROM the table, with WHERE and GROUP BY"

_CLAUSES = {
    "distinct": ("SELECT DISTINCT", "ask for COUNT(*) with GROUP BY"),
    "having": ("HAVING", "every group is answered; filter the noisy answers"),
    "limit": ("LIMIT", "every group is answered"),
    "offset": ("OFFSET", "every group is answered"),
    "joins": ("a join (JOIN, or several tables after FROM)", "declare the joined table as one table"),
    "with_": ("WITH", "conditions are on the columns of one table"),
    "qualify": ("QUALIFY", "use WHERE"),
    "windows": ("WINDOW", "use GROUP BY"),
    "laterals": ("LATERAL", "conditions are on the columns of one table"),
    "pivots": ("PIVOT", "use GROUP BY"),
    "sample": ("a sample (TABLESAMPLE, USING SAMPLE)", "all rows are counted"),
    "into": ("INTO", "answers are returned, not stored"),
    "locks": ("FOR UPDATE", "statements only read"),
    "kind": ("SELECT AS", CAN_DO),
    "cluster": ("CLUSTER BY", "use GROUP BY"),
    "distribute": ("DISTRIBUTE BY", "use GROUP BY"),
    "sort": ("SORT BY", "use ORDER BY"),
    "connect": ("CONNECT BY", CAN_DO),
    "match": ("MATCH_RECOGNIZE", CAN_DO),
    "db": ("a schema before the table", "name the declared table alone"),
    "catalog": ("a catalog before the table", "name the declared table alone"),
    "only": ("ONLY", "name the declared table alone"),
    "when": ("AT (a version of the table)", "name the declared table alone"),
    "version": ("VERSION (of the table)", "name the declared table alone"),
    "ordinality": ("WITH ORDINALITY", "name the declared table alone"),
    "all": ("GROUP BY ALL", "name the columns"),
    "rollup": ("ROLLUP", "ask for each grouping by itself"),
    "cube": ("CUBE", "ask for each grouping by itself"),
    "grouping_sets": ("GROUPING SETS", "ask for each grouping by itself"),
    "totals": ("WITH TOTALS", "ask for each grouping by itself"),
}


_JOINED = re.compile(r"(?<![\w.])[\d_]+(?:\.[\d_]*)?(?!e[+-]?\d)[^\W\d_]\w*", re.IGNORECASE)
_ODD = re.compile(
    r"(?P<list>[\[\]{}])|(?P<parameter>[$?#]|(?<!:):(?!:))|(?P<operator><=>|!(?!=)|[@~^&|\\`])"
    r"|(?P<control>[\x00-\x08\x0e-\x1f\x7f])"
)
_PREFIX = re.compile(r"(?<!\w)\w\Z")
_WORD = re.compile(r"\s*([^\W\d]\w*|\()")
_JOIN = re.compile(r"\b(?:STRAIGHT_)?JOIN\b", re.IGNORECASE)
_TOP = re.compile(r"\s*SELECT\s+TOP\b", re.IGNORECASE)
_STRING_AFTER = re.compile(r"\b(?:DISTINCT\s+FROM|(FROM|AS))\s*'", re.IGNORECASE)


def read(text: str) -> exp.Select:
    """
    The one SELECT that `text` is.

    Parameters
    ----------
    text : str
        At most ``MAX_LENGTH`` characters; one semicolon may end it.

    Raises
    ------
    QuerySyntaxError
        It is not SQL; the message has line and column.
    UnsupportedQuery
        It is another kind of statement, several, too long, too deep, or hides something in a comment.

    Notes
    -----
    What sqlglot drops on the way, a tree cannot show; `check_read` refuses it when all else is sound.
    """
    check_text(text)
    code = _without_comments(text)
    first = _WORD.match(code)
    if first is None:
        raise QuerySyntaxError(
            "the statement is empty"
            if not code.strip()
            else "line 1, column 1: a statement begins with SELECT"
        )
    if first[1].upper() != "SELECT":
        raise UnsupportedQuery(
            f"a statement that begins with {clip(first[1].upper())} is not supported; {CAN_DO}"
        )
    plain = _without_quotes(code)
    words = _few_words(plain, MAX_TOKENS)
    if len(_JOIN.findall(plain)) > MAX_JOINS:
        raise _refused_clause("joins")
    tree = _one_select(code)
    if (joined := _JOINED.search(plain)) is not None:
        raise QuerySyntaxError(f"a space is missing in {clip(joined.group(), 40)}")
    # sqlglot reads BETWEEN 1 2 as well; SQL does not.
    ands = len(re.findall(r"\bAND\b", plain, re.IGNORECASE))
    if ands < sum(1 for _ in tree.find_all(exp.And, exp.Between)):
        raise QuerySyntaxError("BETWEEN takes two constants with AND between them")
    quoted = {p.text[1:-1].replace('""', '"') for p in lex(code) if p.text[0] == '"'}
    tree.meta["unaccounted"] = unaccounted(tree, words, plain, quoted)
    return tree


def _one_select(code: str) -> exp.Select:
    """The tree of a text without comments, as sqlglot reads it."""
    try:
        trees = parse(code, read="duckdb")
    except RecursionError:
        raise too_deep() from None
    except errors.ParseError as error:
        raise _cannot_read(error, code) from None
    except Exception:  # the tokenizer has errors of many kinds, and any text may come
        raise QuerySyntaxError("line 1, column 1: the statement cannot be read as SQL") from None
    if len(trees) != 1:
        raise UnsupportedQuery("several statements in one text are not supported; ask them one by one")
    tree = trees[0]
    if isinstance(tree, exp.SetOperation):
        raise UnsupportedQuery(f"{tree.key.upper()} is not supported; ask both SELECTs one by one")
    if not isinstance(tree, exp.Select):
        raise UnsupportedQuery(f"this kind of statement is not supported; {CAN_DO}")
    return tree


def check_size(text: str, most: int) -> None:
    """Refuse a text of more words and signs than a reader takes time for."""
    check_text(text)
    _few_words(_without_quotes(text), most)


def _few_words(plain: str, most: int) -> list[str]:
    """The words and signs of a text without quoted parts, which are no more than the limit."""
    words = tokens(plain)
    if len(words) > most:
        raise UnsupportedQuery(
            f"the statement has {len(words):,} words and signs; the limit is {most:,}: ask in parts"
        )
    return words


def check_text(text: str) -> None:
    """Refuse a text that is too long, or that holds half of a surrogate pair, which is no character."""
    if len(text) > MAX_LENGTH:
        raise UnsupportedQuery(f"the statement has {len(text):,} characters; the limit is {MAX_LENGTH:,}")
    if (half := re.search(r"[\ud800-\udfff]", text)) is not None:
        raise QuerySyntaxError(f"{_where(text, half.start())}: half of a surrogate pair is no character")


def check_read(tree: exp.Select) -> None:
    """Refuse a statement with words that sqlglot drops, so that nobody answers another statement."""
    if (refusal := tree.meta.get("unaccounted")) is not None:
        raise UnsupportedQuery(clip(refusal))


def only(node: Node, *keys: str) -> None:
    """Refuse a node that has more parts than we know."""
    if any(value for key, value in node.args.items() if key not in keys):
        raise unsupported(node)


def clauses(node: Node, *known: str) -> None:
    """Refuse, by its name in SQL, every clause that is not among the known ones."""
    for key, part in node.args.items():
        if part and key not in known:
            raise _refused_clause(key, f"what follows in {spell_node(node)}")


def _refused_clause(key: str, otherwise: str = "") -> UnsupportedQuery:
    what, hint = _CLAUSES.get(key, (otherwise, CAN_DO))
    return UnsupportedQuery(f"{what} is not supported; {hint}")


def unsupported(node: object, hint: str = "") -> UnsupportedQuery:
    """The refusal of a construct, in the words of the statement."""
    return UnsupportedQuery(f"{spell_node(node)} is not supported{'; ' + hint if hint else ''}")


def spell_node(node: object) -> str:
    """SQL of a node, short enough for a message."""
    with contextlib.suppress(Exception):
        if isinstance(node, exp.Expression):
            text = node.sql(dialect="duckdb", unsupported_level=errors.ErrorLevel.IGNORE, comments=False)
            if text.strip():
                return clip(text)
    return "this expression"


def too_deep() -> UnsupportedQuery:
    """The refusal of a statement with too many levels."""
    return UnsupportedQuery(
        f"the statement is nested too deeply; use at most {MAX_DEPTH} levels of parentheses"
    )


def clip(text: str, length: int = 70) -> str:
    """A piece of the statement for a message: one line, no control characters, not too long."""
    text = "".join(char if char.isprintable() else " " if char.isspace() else "�" for char in text)
    return text if len(text) <= length else text[: length - 1] + "…"


def _without_comments(text: str) -> str:
    """The text with comments blanked, places kept; refuses what is read differently by different engines."""
    parts: list[str] = []
    opened: list[int] = []
    place = 0
    before = ""
    for piece in lex(text):
        if piece.kind == "open quote":
            raise QuerySyntaxError(f"{_where(text, place)}: a quote is not closed")
        if piece.kind == "open comment":
            raise QuerySyntaxError(f"{_where(text, place)}: a comment is not closed")
        if piece.kind == "comment":
            _check_comment(piece.text[2:].lstrip())
            parts.append(re.sub(r"[^\n\r]", " ", piece.text))
        elif piece.kind == "quote":
            _check_quote(piece.text, before, text, place)
            parts.append(piece.text)
        else:
            if (odd := _ODD.search(piece.text)) is not None:
                raise _odd(odd, _where(text, place + odd.start()))
            _parentheses(piece.text, place, opened, text)
            parts.append(piece.text)
        before = piece.text if piece.kind == "code" else "" if piece.kind == "quote" else " "
        place += len(piece.text)
    if opened:
        raise QuerySyntaxError(f"{_where(text, opened[-1])}: a parenthesis is not closed")
    code = "".join(parts)
    for name in _STRING_AFTER.finditer(_without_quotes(code)):
        if name[1] is not None:
            what = "a file or a text after FROM" if name[1].upper() == "FROM" else "a text as alias"
            raise UnsupportedQuery(f"{what} is not supported; names take double quotes")
    return code


def _check_comment(inside: str) -> None:
    if inside[:1] in ("!", "+"):
        raise UnsupportedQuery("hints in comments are not supported; leave the comment out")
    if ";" in inside:
        raise UnsupportedQuery("a comment that holds a second statement (;) is not supported; leave it out")


def _check_quote(quote: str, before: str, text: str, place: int) -> None:
    if "\0" in quote:
        raise QuerySyntaxError(f"{_where(text, place)}: a quote holds a NUL character")
    if quote == '""':
        raise QuerySyntaxError(f"{_where(text, place)}: an empty quoted name (text takes single quotes)")
    if (prefix := _PREFIX.search(before)) is not None:
        what = clip(f"{prefix.group()}{quote}", 40)
        raise UnsupportedQuery(f"{what} is not supported; write plain text in single quotes")


def _without_quotes(code: str) -> str:
    return "".join(p.text[0] * 2 if p.kind == "quote" else p.text for p in lex(code))


def _odd(match: re.Match[str], where: str) -> UnsupportedQuery:
    sign = match.group()
    if match["list"]:
        return UnsupportedQuery(
            f"lists and structs ({sign}) are not supported; IN takes parentheses ({where})"
        )
    if match["parameter"]:
        return UnsupportedQuery(
            f"parameters and positions ({sign}) are not supported; write the value itself ({where})"
        )
    if match["operator"]:
        return UnsupportedQuery(
            f"the operator {sign} is not supported; use = <> < <= > >= BETWEEN IN LIKE AND OR NOT ({where})"
        )
    return QuerySyntaxError(f"{where}: a control character")


def _parentheses(code: str, start: int, opened: list[int], text: str) -> None:
    """Follow the parentheses of a piece of code; `opened` holds the places of those not closed yet."""
    for sign in re.finditer(r"[()]", code):
        if sign.group() == "(":
            opened.append(start + sign.start())
            if len(opened) > MAX_DEPTH:
                raise too_deep()
        elif opened:
            opened.pop()
        else:
            raise QuerySyntaxError(f"{_where(text, start + sign.start())}: ) without (")


def _where(text: str, place: int) -> str:
    before = re.split(r"\r\n|\r|\n", text[:place])
    return f"line {len(before)}, column {len(before[-1]) + 1}"


def _cannot_read(error: errors.ParseError, code: str) -> QuerySyntaxError:
    found = error.errors[0] if error.errors else {}
    near = str(found.get("highlight") or "")
    line = int(found.get("line") or 1)
    column = max(1, int(found.get("col") or 1) - max(len(near) - 1, 0))
    said = str(found.get("description") or "")
    what = "the statement cannot be read"
    if said.startswith("Required keyword"):
        what = "something is missing"
    elif match := re.fullmatch(r"Expecting (\W|[A-Z]+)", said):
        what = f"{match[1]} is expected"
    elif match := re.fullmatch(r"Found multiple '([A-Z ]+)' clauses", said):
        what = f"{match[1]} is given twice"
    place = f" at {clip(near, 40)}" if near.strip() else " at its end"
    hint = "; instead of TOP write LIMIT at the end" if _TOP.match(code) else ""
    return QuerySyntaxError(f"line {line}, column {column}: {what}{place}{hint}")
