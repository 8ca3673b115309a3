"""`lapras.toml`: everything public about a session."""

from laprasdp.config.config import FILE, Config, Prediction, read_config

__all__ = ["FILE", "Config", "Prediction", "read_config"]
