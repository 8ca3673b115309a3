"""Terms: what is declared for all periods alike, and the policy that follows for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from laprasdp.errors import ConfigError
from laprasdp.pacing.pacing import Reading
from laprasdp.periods.period import Part
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.policy import Policy, Setting
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query
from laprasdp.stream.opening import Predicted, read_predictions
from laprasdp.stream.session import DEFAULT_POLICY


@dataclass(frozen=True)
class Terms:
    """
    What holds for each period unless it declares otherwise.

    Attributes
    ----------
    budget : Budget
        Of each period.
    horizon, predictions, policy, accounting, split, overlap, expected, reading, unit, caps
        As in `open_session`; `predictions` are over the whole domain.
    """

    budget: Budget
    horizon: int | None = 100
    predictions: Iterable[str | Query] = ()
    policy: str = DEFAULT_POLICY
    accounting: str = "gaussian"
    split: str = "matrix-heavy"
    overlap: float | None = None
    expected: Sequence[float] = ()
    reading: Reading = field(default_factory=Reading)
    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    caps: Mapping[str, float] = field(default_factory=dict)

    def before(self, part: Part, whole: Domain, table: str) -> tuple[Policy, list[str]]:
        """
        A period's policy in its state before the stream, and how each of its predicted queries is called.

        Parameters
        ----------
        part : Part
        whole : Domain
            That predictions are over.
        table : str
            How statements call the table.

        Raises
        ------
        ConfigError
            The errors of the policy's answers are not Gaussian, so sums would have no exact interval.
        UnsupportedQuery
            A prediction cannot be asked.
        """
        period = part.period
        own = period.predictions is not None
        predictions, expected = (period.predictions or (), ()) if own else (self.predictions, self.expected)
        predicted = part.predicted(read_predictions(predictions, whole, table, expected))
        setting = Setting(
            part.domain,
            period.budget or self.budget,
            self.horizon,
            tuple(predicted),
            accounting=self.accounting,
            split=self.split,
            overlap=self.overlap,
            expected=_counts(predicted) if expected else (),
            unit=self.unit,
            reading=self.reading,
        )
        policy = policy_named(period.policy or self.policy, setting)
        if policy.law != "gaussian":
            raise ConfigError(
                f"answers of several periods are added up, which needs Gaussian errors; {policy.name} has "
                f"{policy.law} ones: choose another policy"
            )
        return policy, [one.name for one in predicted.values()]


def _counts(predicted: Mapping[Query, Predicted]) -> tuple[float, ...]:
    return tuple(one.count for one in predicted.values())
