"""The command line interface of gordan; see `gordan --help`."""

import contextlib
import os
import signal
import sys
import traceback

import gordan

__all__ = ["main"]

# EX_SOFTWARE of `sysexits.h`: an internal error must not be mistaken for an answer such as 1, "no".
CRASHED = 70
# What a shell reports for a program that was ended by SIGPIPE.
BROKEN_PIPE = 128 + signal.SIGPIPE if hasattr(signal, "SIGPIPE") else CRASHED


def main() -> None:
    """Run the `gordan` command."""
    try:
        from gordan.cli.app import run  # imported here, because Ctrl-C may be pressed during the import

        run()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # rich exits with 1, which would mean "no", if a pipe is closed
            sys.exit(BROKEN_PIPE)
        raise
    except KeyboardInterrupt:  # before a command has begun; commands report what they have
        print("gordan: interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:  # from an import, or from printing the help to a full disk; commands catch their own
        expected = isinstance(error, OSError)
        message = str(error) if expected else crash_report(error, debug="--debug" in sys.argv)
        if expected:
            drop_output()
        with contextlib.suppress(OSError):  # stderr may be full as well
            print(f"gordan: {message}", file=sys.stderr)
        sys.exit(2 if expected else CRASHED)


def drop_output() -> None:
    """Send what is left in the buffer of stdout nowhere: flushing it at exit would fail again, and change the exit code."""
    out = sys.__stdout__
    if out is not None and out is sys.stdout:  # not that of a program which calls this one
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())


def crash_report(error: Exception, *, debug: bool) -> str:
    """Return a line that asks to report an unexpected exception; with `debug`, print its traceback as well."""
    debug = debug or os.environ.get("GORDAN_DEBUG", "0") not in ("", "0")
    if debug:
        traceback.print_exception(error)
    line = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":")
    message = f"unexpected {line[:500]}; this is a bug in gordan {gordan.__version__} or a broken installation"
    return f"{message}. Please report it" + ("" if debug else ", with what the same command prints with --debug")
