"""The command line: `gordan --help`."""

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the `gordan` command."""
    try:
        from gordan.cli.app import run  # here: Ctrl-C may come while it is imported

        run()
    except KeyboardInterrupt:  # before a command has begun; commands tell what they have
        sys.exit(130)
