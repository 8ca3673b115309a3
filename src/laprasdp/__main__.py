"""`python -m laprasdp` is the command `lapras`."""

from laprasdp.cli import main

if __name__ == "__main__":
    main()
