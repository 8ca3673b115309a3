"""Placeholder"""

from laprasdp.predict.frequency import Frequency


class Mixture(Frequency):
    def __init__(self, horizon: int) -> None:
        super().__init__()
