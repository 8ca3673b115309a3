"""The policies by name."""

from __future__ import annotations

from collections.abc import Callable

from laprasdp.errors import ConfigError, UnsupportedQuery
from laprasdp.limits import MAX_CELLS
from laprasdp.policy.baselines import Histogram, Independent, Laplace, Offline
from laprasdp.policy.lapras import smooth, smooth_cache, static
from laprasdp.policy.policy import Policy
from laprasdp.policy.primm_choice import primm
from laprasdp.policy.primm_dense import LaplaceCounts
from laprasdp.policy.setting import Setting
from laprasdp.strategy.threads import one_thread


def laplace_counts(setting: Setting) -> Policy:
    """Laplace counts of all cells of a small table."""
    if setting.domain.size > MAX_CELLS:
        raise UnsupportedQuery(
            f"laplace-counts is for {MAX_CELLS:,} cells at most, not {setting.domain.size:,}"
        )
    return LaplaceCounts(setting)


POLICIES: dict[str, Callable[[Setting], Policy]] = {
    "static": static,
    "smooth": smooth,
    "smooth-cache": smooth_cache,
    "primm": primm,
    "independent": Independent,
    "laplace": Laplace,
    "laplace-counts": laplace_counts,
    "histogram": Histogram,
    "histogram-total": lambda setting: Histogram(setting, total=True),
    "offline": Offline,
}
"""Name to policy; all under the protocol of `Policy`."""


@one_thread()
def policy_named(name: str, setting: Setting) -> Policy:
    """
    Build a policy.

    Raises
    ------
    ConfigError
        No policy of this name.
    """
    build = POLICIES.get(name.replace("_", "-").replace("+", "-"))
    if build is None:
        raise ConfigError(f"no policy {name!r}; there are {', '.join(POLICIES)}")
    return build(setting)
