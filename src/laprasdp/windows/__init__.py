"""Windows: a table that grows, in periods of a date attribute that have a budget each."""

from laprasdp.windows.opening import open_windows
from laprasdp.windows.period import Period
from laprasdp.windows.windowed import WindowedSession

__all__ = ["Period", "WindowedSession", "open_windows"]
