"""What is declared for all periods alike, and the policy of one period that follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from laprasdp.errors import ConfigError
from laprasdp.periods.period import Part
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.policy import Policy
from laprasdp.policy.stream import Stream
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.sql.lookup import Lookup
from laprasdp.sql.reader import Reader
from laprasdp.stream.predictions import read_predictions


@dataclass(frozen=True)
class Declaration:
    """
    What holds for each period unless it declares otherwise.

    Attributes
    ----------
    budget : Budget
        Of each period.
    stream : Stream
        Its predictions are over the whole domain.
    unit : PrivacyUnit
    caps : mapping of analyst to float
        As in `open_session`.
    lookups : mapping of name to Lookup
    derived : mapping of name to str
        What statements may name beside the table.
    """

    budget: Budget
    stream: Stream
    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    caps: Mapping[str, float] = field(default_factory=dict)
    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    derived: Mapping[str, str] = field(default_factory=dict)

    def before(self, part: Part, reader: Reader) -> tuple[Policy, list[str]]:
        """
        A period's policy in its state before the stream, and how each of its predicted queries is called.

        Parameters
        ----------
        part : Part
        reader : Reader
            Over the whole domain.

        Raises
        ------
        ConfigError
            The errors of the policy's answers are not Gaussian, so sums would have no exact interval.
        UnsupportedQuery
            A prediction cannot be asked.
        """
        period = part.period
        stream = self.stream
        if period.predictions is not None:
            stream = replace(stream, predictions=period.predictions)
        predicted = part.predicted(read_predictions(stream.declared, reader))
        setting = stream.setting(part.domain, period.budget or self.budget, self.unit, predicted)
        policy = policy_named(period.policy or stream.policy, setting)
        if policy.law != "gaussian":
            raise ConfigError(
                f"answers of several periods are added up, which needs Gaussian errors; {policy.name} has "
                f"{policy.law} ones: choose another policy"
            )
        return policy, [one.text for one in predicted]
