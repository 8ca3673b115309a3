"""The declaration of a stream, which Python, `lapras.toml` and the ledger's settings all read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from laprasdp.arguments import IS_HORIZON, check_arguments, is_list, is_text, option, or_none
from laprasdp.errors import ConfigError
from laprasdp.pacing.pacing import Reading
from laprasdp.policy.setting import Options, Setting
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.queries.prediction import Prediction, describe
from laprasdp.queries.query import Query

DEFAULT_POLICY = "primm"


@dataclass(frozen=True)
class Stream(Options):
    """
    A stream of statements as it is declared: how long it is, what it holds, and how it is answered.

    Attributes
    ----------
    horizon : int or None
        Statements that the budget is paced for; None where nobody knows, which primm allows.
    predictions : sequence of str, Query or Prediction
        The statements that are expected; a GROUP BY predicts each of its groups.  They must not come from
        somebody who has seen the table.  Kept as a tuple of `Prediction`, each with its place.
    policy : str
        A name of `laprasdp.policy.catalog.POLICIES`.
    post : {"fitted"}, optional
        What is shown beside each unbiased value: a fitted one, which is biased and often closer.  No ledger
        keeps it: it changes nothing that is measured.
    accounting, split, overlap, reading, release
        As in `Options`.

    Raises
    ------
    ConfigError
        Something of it makes no sense.
    """

    horizon: int | None = option(100, *IS_HORIZON)
    predictions: Iterable[str | Query | Prediction] = option((), is_list, "a list of statements or queries")
    policy: str = option(DEFAULT_POLICY, is_text, "the name of a policy", kw_only=True)
    post: str | None = option(None, or_none(("fitted",).__contains__), '"fitted" or None', kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "predictions", _placed(self.predictions))

    @property
    def declared(self) -> tuple[Prediction, ...]:
        """`predictions` as a tuple of `Prediction`."""
        return _placed(self.predictions)

    @classmethod
    def of(cls, stream: Stream | None, options: dict[str, Any]) -> Stream:
        """
        A stream with some of its fields given as keywords.

        Parameters
        ----------
        stream : Stream, optional
            Where the other fields come from; the defaults otherwise.
        options : mapping of field to value
            ``expected``, a sequence with one count for each prediction, is taken too.

        Raises
        ------
        ConfigError
            A field is not known, or its value makes no sense.
        """
        if stream is not None and not isinstance(stream, Stream):
            raise ConfigError(f"stream must be a Stream, not {stream!r}")
        options = dict(options)
        expected = options.pop("expected", ())
        check_arguments(expected=expected)
        known = [one.name for one in fields(cls)]
        for name in options:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"a stream has {', '.join(known)}"
                raise ConfigError(f"unknown option {name}; {hint}")
        if options.get("reading", ...) is None:
            options["reading"] = Reading()
        found = replace(stream or cls(), **options)
        return found.with_expected(expected) if expected else found

    def with_expected(self, expected: Sequence[float]) -> Stream:
        """The same with a count for each prediction, in order."""
        if len(expected) != len(self.declared):
            raise ConfigError(f"{len(self.declared)} predictions, but {len(expected)} expected counts")
        counted = [replace(one, expected=count) for one, count in zip(self.declared, expected, strict=True)]
        return replace(self, predictions=tuple(counted))

    def setting(
        self, domain: Domain, budget: Budget, unit: PrivacyUnit, predicted: Sequence[Prediction]
    ) -> Setting:
        """
        What a policy is built from.

        Parameters
        ----------
        predicted : sequence of Prediction
            That ask one query each, all of them distinct.
        """
        counts = [one.expected for one in predicted]
        return Setting(
            domain,
            budget,
            self.horizon,
            tuple(one.queries[0] for one in predicted),
            expected=tuple(1.0 if count is None else count for count in counts) if any(counts) else (),
            unit=unit,
            **self.options,
        )


def _placed(given: Iterable[str | Query | Prediction]) -> tuple[Prediction, ...]:
    """Statements, queries and predictions as predictions, each with its place."""
    found = []
    for number, one in enumerate(given, start=1):
        place = f"prediction {number}"
        if isinstance(one, Prediction):
            found.append(one)
        elif isinstance(one, Query):
            found.append(Prediction(describe(one), (one.canonical(),), place=place))
        elif isinstance(one, str):
            found.append(Prediction(one, place=place))
        else:
            raise ConfigError(f"{place} must be a statement or a Query, not {one!r}")
    return tuple(found)
