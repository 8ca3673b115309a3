"""Public tables that a statement may join: one row a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from laprasdp.errors import ConfigError

TABLE = "lapras lookup "


@dataclass(frozen=True, eq=False)
class Lookup:
    """
    A public table with a key.

    Parameters
    ----------
    rows : pa.Table
        Public: it is shown to whoever asks.
    key : str
        The column that a declared attribute is joined with; no value of it comes twice, NULLs apart.

    Raises
    ------
    ConfigError
        There is no such column, or a key comes twice.
    """

    rows: pa.Table
    key: str

    def __post_init__(self) -> None:
        if self.key not in self.rows.column_names:
            listed = ", ".join(self.rows.column_names[:20])
            raise ConfigError(f"a lookup has no column {self.key!r}; it has {listed}")
        keys = self.rows.column(self.key).drop_null()
        counts = keys.value_counts()
        for one in counts:
            if one["counts"].as_py() > 1:
                raise ConfigError(
                    f"the key {self.key} of a lookup has {one['values'].as_py()!r} more than once; "
                    "keep one row a key"
                )

    @classmethod
    def read(cls, path: str | Path, key: str) -> Lookup:
        """
        Read a CSV file with a header, or a Parquet file.

        Raises
        ------
        ConfigError
            It cannot be read, or is no lookup.
        """
        try:
            if Path(path).suffix == ".parquet":
                import pyarrow.parquet as pq

                return cls(pq.read_table(path), key)
            import pyarrow.csv as pc

            return cls(pc.read_csv(path), key)
        except (OSError, pa.ArrowException) as error:
            raise ConfigError(
                f"the lookup {Path(path).name} cannot be read: {str(error).splitlines()[0]}"
            ) from None


def lookups_of(given: Mapping[str, Any] | None) -> dict[str, Lookup]:
    """Lookups by name, each a `Lookup` already."""
    found = dict(given or {})
    for name, one in found.items():
        if not isinstance(one, Lookup):
            raise ConfigError(f"the lookup {name} must be a Lookup, not {type(one).__name__}")
    return found
