"""Windows as `lapras.toml` declares them: the date attribute, the step of its periods, own budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from laprasdp.config.section import Section, placed
from laprasdp.errors import ConfigError
from laprasdp.periods.period import Part, Period, dates_of, periods_of
from laprasdp.privacy.budget import Budget
from laprasdp.queries.domain import Domain


@dataclass(frozen=True)
class Windows:
    """
    Periods of a date attribute, with a budget each.

    Attributes
    ----------
    attribute : str
    step : int or str
        In days, or "week", "month", "quarter", "year".
    budgets : mapping of first date to Budget
        Of the periods that have another one than [privacy] declares.
    """

    attribute: str
    step: int | str
    budgets: Mapping[str, Budget] = field(default_factory=dict)

    def parts(self, domain: Domain) -> dict[str, Part]:
        """
        The periods by first date, in order.

        Raises
        ------
        DomainError
            The domain has no such periods.
        ConfigError
            A budget is declared for what is no period.
        """
        periods = periods_of(dates_of(domain, self.attribute), self.attribute, self.step)
        strange = set(self.budgets) - {period.name for period in periods}
        if strange:
            raise ConfigError(f"budgets: no period of {self.attribute} begins on {min(strange)}")
        return {period.name: Part.of(domain, self.attribute, self._own(period)) for period in periods}

    def last(self, domain: Domain) -> Part:
        """The last period, which plans stand for."""
        return list(self.parts(domain).values())[-1]

    def _own(self, period: Period) -> Period:
        return replace(period, budget=self.budgets.get(period.name))


def read_windows(section: Section, budget: Budget) -> Windows:
    """
    The windows from their section.

    Parameters
    ----------
    section : Section
    budget : Budget
        Of every period; its δ holds where a period's own budget names none.

    Raises
    ------
    ConfigError, BudgetError
        A key is missing, unknown or wrong; a budget makes no sense.
    """
    section.only("attribute", "step", "budgets")
    attribute, step = section.take("attribute", str), section.take("step", (int, str))
    declared = section.section("budgets", "windows.budgets")
    budgets = {}
    for name in declared.names:
        one = declared.section(name, f"windows.budgets.{name}")
        one.only("epsilon", "delta")
        number = (int, float)
        epsilon, delta = one.take("epsilon", number), one.take("delta", number, budget.delta)
        budgets[name] = placed(one.where, Budget, epsilon, delta)
    return Windows(attribute, step, budgets)
