"""What was released as tables for DuckDB: as it is, or once for each draw around it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from laprasdp.arrays import Floats
from laprasdp.derive.quantiles import cumulative, quantile_of
from laprasdp.scratch import Scratch, Tree
from laprasdp.sql.result import DRAW, RELEASED, Block, Quantile, Result, Sum

_SCRATCH = Scratch()


class ReleasedTables:
    """
    The released tables of a result.

    Parameters
    ----------
    result : Result
    stds : (m,) array
        Standard deviations of the answers of its queries.
    """

    def __init__(self, result: Result, stds: Floats) -> None:
        self.result, self.stds = result, stds

    def run(self, select: Tree, values: Floats, *, repeated: bool = False) -> pa.Table:
        """
        What a SELECT shows.

        Parameters
        ----------
        select : Tree
        values : (d, m) array
            The answers of all queries, in each of d draws.
        repeated : bool
            The tables hold all draws, with the number of each in a column; otherwise d is 1.

        Raises
        ------
        ScratchError
            DuckDB fails on these values.
        """
        tables = dict(self.result.tables)
        for number, block in enumerate(self.result.blocks):
            table = self._table(block, values)
            if repeated:
                draws = np.repeat(np.arange(len(values)), len(block.keys))
                table = table.append_column(DRAW, pa.array(draws))
            tables[f"{RELEASED}{number}"] = table
        return _SCRATCH.run(select, tables)

    def _table(self, block: Block, values: Floats) -> pa.Table:
        groups = len(block.keys)
        table = block.keys if len(values) == 1 else pa.concat_tables([block.keys] * len(values))
        for slot, one in enumerate(block.slots):
            if isinstance(one, Sum):
                column = (values[:, list(one.queries)] * float(one.factor)).ravel()
            else:
                column = np.array(
                    [self._quantile(one, group, row) for row in values for group in range(groups)],
                    dtype=float,
                )
            table = table.append_column(f"m{slot}", pa.array(column, pa.float64(), from_pandas=True))
        return table

    def _quantile(self, slot: Quantile, group: int, values: Floats) -> float:
        places = list(slot.queries[group])
        counts = cumulative(values[places])
        points, lows = (np.array([float(one) for one in ends]) for ends in (slot.points, slot.lows))
        slack = 4 * slot.share * float(self.stds[places[-1]])
        return quantile_of(points, counts, slot.share, continuous=slot.continuous, slack=slack, lows=lows)
