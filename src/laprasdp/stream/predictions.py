"""Reads predicted statements: what each asks, and what all of them ask together."""

from __future__ import annotations

from collections.abc import Iterable

from laprasdp.errors import UnsupportedQuery
from laprasdp.queries.distinct import Persons
from laprasdp.queries.prediction import Prediction
from laprasdp.queries.query import Query
from laprasdp.sql.parse import Statement
from laprasdp.sql.reader import Reader


def read_predictions(predictions: Iterable[Prediction], reader: Reader) -> tuple[Prediction, ...]:
    """
    The distinct queries that are predicted, each as a prediction of its own.

    Parameters
    ----------
    predictions : iterable of Prediction
        Those that hold their queries are not read again.
    reader : Reader
        Over the table.

    Returns
    -------
    tuple of Prediction
        In the order of first mention, a group of a GROUP BY named by its labels.  What is predicted twice is
        expected as often as both together; queries that no cell can match are left out, and so are those of
        persons, which no release before the stream tells of.

    Raises
    ------
    UnsupportedQuery
        A prediction cannot be asked, or no cell of the domain can match it; the message says where it stands.
    """
    found: dict[Query, Prediction] = {}
    for one in predictions:
        whole = read_prediction(one, reader)
        for part in whole.parts:
            query = part.queries[0]
            if _is_predicted(query):
                found[query] = found[query].together(part) if query in found else part
    return tuple(found.values())


def read_prediction(one: Prediction, reader: Reader) -> Prediction:
    """
    The prediction with what it asks.

    Raises
    ------
    UnsupportedQuery
        As from `read_predictions`.
    """
    try:
        read = one if one.queries else predicted(reader.parse(one.text), one.expected, one.place)
        if any(query.domain != reader.domain for query in read.queries):
            raise UnsupportedQuery("the query is over another domain")
        if all(query.is_zero for query in read.queries):
            raise UnsupportedQuery("no cell of the declared domain can match it")
        if not any(map(_is_predicted, read.queries)):
            raise UnsupportedQuery("persons are counted when that is asked, and are not predicted")
    except UnsupportedQuery as error:
        raise type(error)(f"{one.place}: {error}") from None
    return read


def predicted(statement: Statement, expected: float | None, place: str) -> Prediction:
    """A statement that was read, as a prediction."""
    labels = tuple(", ".join(map(str, labels)) for labels in statement.groups) if statement.by else ()
    if statement.result is not None:
        labels = tuple(f"count {place}" for place in range(1, len(statement.queries) + 1))
    return Prediction(statement.text, tuple(statement.queries), labels, expected, place)


def _is_predicted(query: Query) -> bool:
    return not query.is_zero and not isinstance(query, Persons)
