"""Where the ledger is kept, and who may ask, as `lapras.toml` declares them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from laprasdp.config.section import Section, placed
from laprasdp.errors import ConfigError, LedgerError
from laprasdp.privacy.budget import Budget
from laprasdp.queries.domain import Domain

if TYPE_CHECKING:
    from laprasdp.ledger.sql import SQLLedger, SQLShelf


@dataclass(frozen=True)
class Place:
    """
    Where a ledger is kept.

    Attributes
    ----------
    where : Path or str
        A SQLite file; or the address of a PostgreSQL database, which may hold a password: not for printing.
    dataset : str
        Which of the ledgers there.
    """

    where: Path | str = field(repr=False)
    dataset: str = "main"

    def open(self, domain: Domain) -> SQLLedger:
        """The ledger, made if it is not there; a warning for others over the same attributes."""
        from laprasdp.ledger.sql import SQLLedger

        ledger = SQLLedger(self.where, dataset=self.dataset)
        self._warn(domain, self.dataset.__eq__)
        return ledger

    def shelf(self, domain: Domain, start: str) -> SQLShelf:
        """The same for the ledgers whose datasets begin with `start`."""
        from laprasdp.ledger.sql import SQLShelf

        shelf = SQLShelf(self.where)
        self._warn(domain, lambda name: name.startswith(start))
        return shelf

    @property
    def begun(self) -> bool:
        """Whether there may be something to read, or a log of what was lost; opening it shows what."""
        return isinstance(self.where, str) or self.where.exists() or Path(f"{self.where}-wal").exists()

    def existing(self) -> SQLLedger:
        """
        The ledger, for reading.

        Raises
        ------
        LedgerError
            It is not there.
        """
        from laprasdp.ledger.sql import SQLLedger

        self._check_begun()
        return SQLLedger(self.where, dataset=self.dataset)

    def existing_shelf(self) -> SQLShelf:
        """All ledgers of the database, for reading; errors as from `existing`."""
        from laprasdp.ledger.sql import SQLShelf

        self._check_begun()
        return SQLShelf(self.where)

    def _check_begun(self) -> None:
        if not self.begun:
            raise LedgerError(
                f"there is no ledger {self.where} yet: the first `lapras ask` or `run` begins it"
            )

    def _warn(self, domain: Domain, own: Callable[[str], bool]) -> None:
        from laprasdp.ledger.beside import beside

        if isinstance(self.where, Path):
            for other in beside(self.where, own, domain):
                warnings.warn(
                    f"beside this ledger, {other} over the same attributes: "
                    "two ledgers for one table are two budgets",
                    stacklevel=4,
                )


def read_ledger(section: Section, folder: Path) -> Place:
    """
    The place of the ledger from its section.

    Raises
    ------
    ConfigError
        It names no file and no address, or both, or an address of another kind.
    """
    section.only("file", "url", "dataset")
    file, url = section.take("file", str, None), section.take("url", str, None)
    if (file is None) == (url is None):
        raise ConfigError(f"{section.where}: name the ledger by one of file or url")
    if url is not None and not url.startswith(("postgresql://", "postgresql+psycopg://", "postgres://")):
        raise ConfigError(f"{section.where}: url begins with postgresql://; for SQLite give file")
    if file is not None and (not file or "://" in file or "password=" in file):
        raise ConfigError(f"{section.where}: file is the path of a SQLite file; for PostgreSQL give url")
    return Place(folder / file if file is not None else url, section.take("dataset", str, "main"))


def read_analysts(section: Section, delta: float) -> dict[str, float]:
    """
    Cap in ε of each analyst.

    Raises
    ------
    ConfigError, BudgetError
        A cap is no ε.
    """
    caps = {name: section.take(name, (int, float)) for name in section.names}
    for name, epsilon in caps.items():
        placed(f"{section.where}: {name}", Budget, epsilon, delta)
    return caps
