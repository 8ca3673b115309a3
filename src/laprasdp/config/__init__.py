"""What `lapras.toml` declares: everything public about a session."""

from laprasdp.config.config import FILE, Config, read_config

__all__ = ["FILE", "Config", "read_config"]
