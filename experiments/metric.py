"""Errors of a stream of answers; what was refused counts as answered by 0, and is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.trial import Floats, Outcome

NAMES = ("mae", "rmse", "nmae", "nrmse", "mape", "smape")


def errors(truth: Floats, answers: Floats) -> dict[str, float]:
    r"""
    How far the answers of one stream are off.

    Parameters
    ----------
    truth : (S,) array
        :math:`t`, exact answers, in records.
    answers : (S,) array
        :math:`a`; nan where refused.

    Returns
    -------
    dict
        With :math:`e=a-t`, where a refused query has a = 0:

        - mae, mean :math:`|e|`, and rmse, root of the mean :math:`e^2`, in records;
        - nmae, mae over the mean of :math:`|t|`;
        - nrmse, rmse over the range, :math:`\max t-\min t`;
        - mape, mean of :math:`|e|/\max(|t|,1)`;
        - smape, mean of :math:`2|e|/(|a|+|t|)`, between 0 and 2; 0 where both are 0;
        - answered, the share that was, and mae_answered, mean :math:`|e|` over those alone.

        A normaliser of zero gives nan.
    """
    refused = np.isnan(answers)
    values = np.where(refused, 0.0, answers)
    off = np.abs(values - truth)
    size = np.abs(values) + np.abs(truth)
    mae, rmse = float(off.mean()), float(np.sqrt((off**2).mean()))
    mean, spread = float(np.abs(truth).mean()), float(np.ptp(truth))
    return {
        "mae": mae,
        "rmse": rmse,
        "nmae": mae / mean if mean else np.nan,
        "nrmse": rmse / spread if spread else np.nan,
        "mape": float((off / np.maximum(np.abs(truth), 1.0)).mean()),
        "smape": float(np.divide(2 * off, size, out=np.zeros_like(off), where=size > 0).mean()),
        "answered": float(1 - refused.mean()),
        "mae_answered": float(off[~refused].mean()) if not refused.all() else np.nan,
    }


def expected_mae(truth: Floats, outcome: Outcome) -> float:
    """
    Expectation of the MAE over the noise, from exact variances; nan where one is not known.

    Parameters
    ----------
    truth : (S,) array
    outcome : Outcome
        A refused query is off by its own answer.
    """
    refused = np.isnan(outcome.answers)
    return float(np.where(refused, np.abs(truth), outcome.expected_errors).mean())


def summary(truths: Sequence[Floats], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """
    One row for several runs.

    Parameters
    ----------
    truths : sequence of (S,) arrays
        One a run.
    outcomes : sequence of Outcome

    Returns
    -------
    dict
        Median over runs of every metric, least and largest MAE; mean of the expected MAE, and its median,
        which a run whose reserve was halved again and again does not move; mean share that was answered;
        the largest ε; median seconds.  What is not known is None.
    """
    runs = [errors(truth, outcome.answers) for truth, outcome in zip(truths, outcomes, strict=True)]
    expected = [expected_mae(truth, outcome) for truth, outcome in zip(truths, outcomes, strict=True)]
    of = {name: [run[name] for run in runs] for name in runs[0]}
    row: dict[str, Any] = {
        "mae": np.median(of["mae"]),
        "mae_min": min(of["mae"]),
        "mae_max": max(of["mae"]),
        "expected_mae": np.mean(expected),
        "expected_mae_median": np.median(expected),
        "answered": np.mean(of["answered"]),
        "epsilon_true": max(outcome.epsilon_true for outcome in outcomes),
        "mae_answered": np.median(of["mae_answered"]),
        **{name: np.median(of[name]) for name in NAMES[1:]},
        "runs": len(runs),
        "seconds": np.median([outcome.seconds for outcome in outcomes]),
        "seconds_setup": np.median([outcome.seconds_setup for outcome in outcomes]),
    }
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> int | float | None:
    if isinstance(value, int):
        return value
    return float(f"{value:.6g}") if np.isfinite(value) else None
