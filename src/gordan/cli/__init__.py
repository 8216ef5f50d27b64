"""The command line: `gordan --help`."""

import contextlib
import os
import signal
import sys
import traceback

import gordan

__all__ = ["main"]

# What `sysexits.h` calls an internal error: never one of the codes that are answers.
CRASHED = 70
# What a shell reports of a program that SIGPIPE has ended.
BROKEN_PIPE = 128 + signal.SIGPIPE if hasattr(signal, "SIGPIPE") else CRASHED


def main() -> None:
    """Entry point of the `gordan` command."""
    try:
        from gordan.cli.app import run  # here: Ctrl-C may come while it is imported

        run()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # rich ends so where whoever read our output has gone; 1 would mean "no"
            sys.exit(BROKEN_PIPE)
        raise
    except KeyboardInterrupt:  # before a command has begun; commands tell what they have
        print("gordan: interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:  # of an import, or of the help on a full disk: commands catch their own
        expected = isinstance(error, OSError)
        told = str(error) if expected else crash_report(error, debug="--debug" in sys.argv)
        with contextlib.suppress(OSError):  # stderr may be full as well
            print(f"gordan: {told}", file=sys.stderr)
        sys.exit(2 if expected else CRASHED)


def crash_report(error: Exception, *, debug: bool) -> str:
    """One line about an exception that nobody expected, which asks for a report; with `debug` its traceback is above it."""
    debug = debug or os.environ.get("GORDAN_DEBUG", "0") not in ("", "0")
    if debug:
        traceback.print_exception(error)
    told = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":")
    found = f"unexpected {told[:500]}; this is a bug in gordan {gordan.__version__} or a broken installation"
    return f"{found}. Please report it" + ("" if debug else ", with what the same command prints with --debug")
