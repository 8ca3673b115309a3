"""Windows as `lapras.toml` declares them: the date attribute and the step of its periods."""

from __future__ import annotations

from dataclasses import dataclass

from laprasdp.config.section import Section
from laprasdp.domain import Domain
from laprasdp.windows.period import Part, dates_of, periods_of


@dataclass(frozen=True)
class Windows:
    """
    Periods of a date attribute, with a budget each.

    Attributes
    ----------
    attribute : str
    step : int or str
        In days, or "week", "month", "quarter", "year".
    """

    attribute: str
    step: int | str

    def last(self, domain: Domain) -> Part:
        """
        The last period, which plans stand for.

        Raises
        ------
        DomainError
            The domain has no such periods.
        """
        periods = periods_of(dates_of(domain, self.attribute), self.attribute, self.step)
        return Part.of(domain, self.attribute, periods[-1])


def read_windows(section: Section) -> Windows:
    """The windows from their section."""
    section.only("attribute", "step")
    return Windows(section.take("attribute", str), section.take("step", (int, str)))
