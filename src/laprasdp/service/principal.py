"""Who is let in: a principal, its role, and its tokens as far as they may be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

RoleName = Literal["analyst", "curator", "auditor", "service"]
ROLES: tuple[str, ...] = get_args(RoleName)
ASKING = ("analyst", "service")
"""The roles that may ask."""


@dataclass(frozen=True)
class Principal:
    """
    Somebody, or a program, that the service knows.

    Attributes
    ----------
    number : int
    name : str
        Who asks, as the ledger keeps it; it never changes.
    role : str
    cap : float or None
        The ε of what may be measured for it; None is the whole budget.
    active : bool
        Whether it is let in.
    made, seen : float
        Seconds since 1970; `seen` to the minute, None where it never came.
    """

    number: int
    name: str
    role: str
    cap: float | None
    active: bool
    made: float
    seen: float | None

    @property
    def asks(self) -> bool:
        """Whether its role asks statements."""
        return self.role in ASKING


@dataclass(frozen=True)
class Token:
    """A token without its secret; times are seconds since 1970."""

    number: int
    name: str
    made: float
    expires: float | None
    revoked: float | None

    def dead(self, now: float) -> bool:
        """Whether it lets nobody in any more."""
        return self.revoked is not None or (self.expires is not None and self.expires <= now)
