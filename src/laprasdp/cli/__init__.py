"""What the command `lapras` says: a face on configuration and session; it decides nothing of its own."""

import sys


def main() -> None:
    """Run `lapras` and end the process with its exit code."""
    try:
        from laprasdp.cli.app import app

        app(prog_name="lapras")
    except KeyboardInterrupt:
        print("lapras: interrupted", file=sys.stderr)
        raise SystemExit(130) from None


__all__ = ["main"]
