"""The command line: `gordan demo`, for now."""

from gordan.cli.app import main

__all__ = ["main"]
