"""The aggregates over private rows, and what each is made of: counts, sums, and sums of products."""

from __future__ import annotations

SUMS = ("sum", "fsum", "kahan_sum", "sumkahan")
MEANS = ("avg", "mean", "favg")
MOMENTS = {
    "var_samp": "({xx} - {x} * {x} / nullif({n}, 0)) / nullif({n} - 1, 0)",
    "var_pop": "({xx} - {x} * {x} / nullif({n}, 0)) / nullif({n}, 0)",
}
SPREADS = {
    "variance": "greatest({var_samp}, 0)",
    "var_samp": "greatest({var_samp}, 0)",
    "var_pop": "greatest({var_pop}, 0)",
    "stddev": "sqrt(greatest({var_samp}, 0))",
    "stddev_samp": "sqrt(greatest({var_samp}, 0))",
    "stddev_pop": "sqrt(greatest({var_pop}, 0))",
}
PAIRS = {
    "covar_pop": "({xy} - {x} * {y} / nullif({n}, 0)) / nullif({n}, 0)",
    "covar_samp": "({xy} - {x} * {y} / nullif({n}, 0)) / nullif({n} - 1, 0)",
    "regr_count": "{n}",
    "regr_avgx": "{y} / nullif({n}, 0)",
    "regr_avgy": "{x} / nullif({n}, 0)",
    "regr_sxx": "greatest({yy} - {y} * {y} / nullif({n}, 0), 0)",
    "regr_syy": "greatest({xx} - {x} * {x} / nullif({n}, 0), 0)",
    "regr_sxy": "{xy} - {x} * {y} / nullif({n}, 0)",
    "regr_r2": "least(1, power({n} * {xy} - {x} * {y}, 2) / nullif("
    "greatest({n} * {xx} - {x} * {x}, 0) * greatest({n} * {yy} - {y} * {y}, 0), 0))",
    "regr_slope": "({n} * {xy} - {x} * {y}) / nullif({n} * {yy} - {y} * {y}, 0)",
    "regr_intercept": "({x} * {yy} - {y} * {xy}) / nullif({n} * {yy} - {y} * {y}, 0)",
    "corr": "greatest(-1, least(1, ({n} * {xy} - {x} * {y}) / nullif("
    "sqrt(greatest({n} * {xx} - {x} * {x}, 0)) * sqrt(greatest({n} * {yy} - {y} * {y}, 0)), 0)))",
}
QUANTILES = ("median", "quantile", "quantile_disc", "quantile_cont", "approx_quantile")
REFUSED = {
    "min": "its noise would have to hide the one row at the end; QUANTILE_DISC(x, 0.01) comes close",
    "max": "its noise would have to hide the one row at the end; QUANTILE_DISC(x, 0.99) comes close",
    "mode": "ask for COUNT(*) with GROUP BY and ORDER BY 2 DESC LIMIT 1",
    "any_value": "one row's value is private; group by the column",
    "first": "one row's value is private; group by the column",
    "last": "one row's value is private; group by the column",
    "arg_max": "one row's value is private; ask for COUNT(*) with GROUP BY",
    "arg_min": "one row's value is private; ask for COUNT(*) with GROUP BY",
    "list": "rows are private; ask for COUNT(*) with GROUP BY",
    "string_agg": "rows are private; ask for COUNT(*) with GROUP BY",
    "bool_or": "ask for COUNT_IF",
    "bool_and": "ask for COUNT_IF and COUNT(*)",
    "product": "ask for SUM of ln(x)",
    "histogram": "ask for COUNT(*) with GROUP BY",
    "skewness": "ask for AVG, STDDEV and quantiles",
    "kurtosis": "ask for AVG, STDDEV and quantiles",
    "mad": "ask for MEDIAN and the quantiles at 0.25 and 0.75",
    "entropy": "ask for COUNT(*) with GROUP BY",
    "reservoir_quantile": "a sample is private; ask for QUANTILE_CONT",
    "approx_top_k": "ask for COUNT(*) with GROUP BY and ORDER BY 2 DESC LIMIT",
    "array_agg": "rows are private; ask for COUNT(*) with GROUP BY",
    "group_concat": "rows are private; ask for COUNT(*) with GROUP BY",
    "listagg": "rows are private; ask for COUNT(*) with GROUP BY",
    "max_by": "one row's value is private; ask for COUNT(*) with GROUP BY",
    "min_by": "one row's value is private; ask for COUNT(*) with GROUP BY",
    "approx_count_distinct": "ask for COUNT(*) with GROUP BY, and see which groups are above 0",
}
AGGREGATES = frozenset(
    (
        *("count", "count_star", "count_if", "countif", *SUMS, *MEANS),
        *SPREADS, *PAIRS, *QUANTILES, *REFUSED,
    )
)  # fmt: skip
