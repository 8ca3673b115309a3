"""Every stated limit: what is larger is refused by a message that names the number, or done in a smaller way.

docs/limits.md is written from this file by ``python scripts/limits.py``.
"""

MAX_LEVELS = 2_000_000
"""Levels of one attribute; an attribute with more is refused."""

MAX_CLASSES = 1_000_000
"""Classes of cells that a query, a sum of charges or a marginal tells apart; a query with more is refused."""

MAX_WEIGHT = 2**40
"""Size of a weight of a query, and so of a value that SUM adds; a larger one is refused."""

MAX_COLUMNS = 500_000
"""Distinct columns of a prediction set; one with more is refused."""

MAX_LENGTH = 100_000
"""Characters of a statement; a longer one is refused."""

MAX_TOKENS = 10_000
"""Words, constants and signs of a statement; one with more is refused."""

MAX_DERIVED_TOKENS = 500
"""The same of a statement of several values, or with derived ones; one with more is refused."""

MAX_POINTS = 100_000
"""Combinations of levels that the expressions of a statement are worked out on, in all; more are refused."""

MAX_GROWTH = 1_000
"""Times that REPLACE and concatenations of a statement together may lengthen a text; more is refused."""

MAX_SPELLED = 20_000_000
"""Characters that an expression may have on all its combinations of levels together; more are refused."""

MAX_TABLES = 100
"""Tables of such a statement, those of WITH counted as often as they are used; one with more is refused."""

MAX_DEPTH = 30
"""Levels of parentheses in a statement; a deeper one is refused."""

MAX_JOINS = 4
"""Joins in a statement up to which a refusal names them: each doubles the time that the parser takes."""

MAX_WORK = 300_000_000
"""Levels that all conditions of a statement look at together; a statement with more is refused."""

MAX_VISITS = 100_000_000
"""Conditions on one attribute times its levels; a statement with more is refused."""

MAX_GROUPS = 10_000
"""Groups of a GROUP BY, empty ones included; a statement with more is refused."""

MAX_CURVES = 2_000
"""Counts that all quantiles of a statement are read off; beyond, every second value is counted, or fewer."""

MAX_GROUP_WORK = 200_000_000
"""Numbers that all groups of a GROUP BY hold together; a statement with more is refused."""

MAX_JOINT = 100
"""Groups of a statement up to which PRIMM learns each as a row; of more, each tells of itself and of sums."""

MANY = 1_000
"""Groups of an answer above which their joint covariance is not worked out, asked for or not."""

MAX_CELLS = 1_024
"""Cells up to which a pure release is made of them, and a belief over the cells is read from a ledger."""

MAX_FACTORED = 4_096
"""Cells up to which a pure release is made of more, as a product of one strategy for each attribute."""

MAX_FACTORED_LEVELS = 1_024
"""Levels of an attribute up to which it has such a strategy."""

FITTED_CELLS = 2_048
"""Cells of a pure release up to which values are fitted; of more, only the sign is mended."""

DENSE_CELLS = 256
"""Cells up to which PRIMM keeps its belief over the cells; on more it is over queries."""

MANY_PREDICTED = 1_000
"""Predictions on many cells up to which PRIMM measures them for themselves; more share its background."""

MAX_SEARCHED = 2_000
"""Predictions of the paper's policies and offline where columns are too many to list; more are refused."""

MAX_HISTOGRAM = 10_000
"""Cells of a domain up to which the policies histogram and histogram-total take it."""

MU_SQUARED_LIMIT = 2**20
"""Largest μ² of a budget; a larger one protects nobody and is refused."""

LEAST_EPSILON = 1e-3
"""Smallest ε that a plan proposes: below it errors fall between the units of the ledger."""

REHEARSED = 50
"""Queries that the forecast of `lapras budget` rehearses at most."""

MAX_DIGITS = 38
"""Digits of a decimal constant that a comparison takes, as in DuckDB."""

MAX_HORIZON = 1_000_000
"""Statements that a horizon may have; a longer one is refused."""

MAX_PARSES = 10_000
"""Different statements of a log that are given to the parser; what is left then is not read, and counted."""
