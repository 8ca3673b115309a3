"""What happens where a table grows: periods of a date attribute with a budget each."""

from laprasdp.periods.opening import open_windows
from laprasdp.periods.period import Period
from laprasdp.periods.windowed import WindowedSession

__all__ = ["Period", "WindowedSession", "open_windows"]
