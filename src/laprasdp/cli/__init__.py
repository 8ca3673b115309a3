"""What the command `lapras` says: a face on configuration and session; it decides nothing of its own."""


def main() -> None:
    """Run `lapras` and end the process with its exit code."""
    from laprasdp.cli.app import app

    try:
        app(prog_name="lapras")
    except KeyboardInterrupt:
        raise SystemExit(130) from None


__all__ = ["main"]
