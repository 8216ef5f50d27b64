"""The command line: `gordan --help`."""

from gordan.cli.app import main

__all__ = ["main"]
