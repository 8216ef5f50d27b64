"""Turn functions that return an exit code into commands, which report errors and can be interrupted."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, ParamSpec, get_type_hints

import typer

from gordan.cli import BROKEN_PIPE, CRASHED, crash_report, drop_output
from gordan.cli.answers import escape_controls, print_json, with_original_names
from gordan.cli.fields import FIELDS
from gordan.errors import InputError, MissingExtra

ANSWERED, NO, BAD_INPUT, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130
# EX_TEMPFAIL of `sysexits.h`: the same command, run again, may resume.
TERMINATED = 75
# The longest line of examples that fits a terminal of 80 columns, given the margins of the help.
EXAMPLE_WIDTH = 75
# Before version 0.28, typer joined the lines of an epilog but separated its paragraphs by single newlines.
LINE_BREAK = "\n" if tuple(map(int, typer.__version__.split(".")[:2])) >= (0, 28) else "\n\n"
P = ParamSpec("P")


class Debugging:
    """Whether `--debug` asks for tracebacks."""

    on = False


@dataclass(frozen=True)
class Command:
    """A command of the program: the function that typer runs, and the examples at the end of its help."""

    run: Callable[..., None]
    epilog: str


def command(*lines: str, fields: Mapping[str, str] | None = None) -> Callable[[Callable[..., int]], Command]:
    """Return a decorator that turns a function, which returns an exit code, into a command.

    `lines` are examples of its use, and `fields` are the fields of its JSON output, by the name of the command or of a part of
    its answer. A parameter whose type is a dataclass stands for one option per field of that dataclass.
    """
    FIELDS.update(fields or {})
    return lambda function: Command(with_exit_code(with_flat_options(function)), examples(*lines))


def with_flat_options(function: Callable[..., int]) -> Callable[..., int]:
    """Return the function with one parameter per field in place of each parameter that is a dataclass of options."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type] = {}
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        own, types = [parameter], hints
        if is_dataclass(hints[name]):
            groups[name] = group = hints[name]
            own, types = [*inspect.signature(group).parameters.values()], get_type_hints(group, include_extras=True)
        parameters += [each.replace(kind=each.KEYWORD_ONLY, annotation=types[each.name]) for each in own]

    @functools.wraps(function)
    def grouped(**given: Any) -> int:
        for name, group in groups.items():
            given[name] = group(**{each: given.pop(each) for each in group.__dataclass_fields__})  # type: ignore[attr-defined]
        return function(**given)

    grouped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    grouped.__annotations__ = {each.name: each.annotation for each in parameters}
    return grouped


def examples(*lines: str) -> str:
    """Return examples as the help shows them; explanations behind the commands are moved above them if they do not fit."""
    if max(map(len, lines)) > EXAMPLE_WIDTH:
        parts = [re.split(r" {3,}", line) for line in lines]
        lines = tuple(text for command, *comments in parts for text in (*(f"# {comment}" for comment in comments), command))
    return "[bold]Examples[/bold]\n\n" + LINE_BREAK.join(lines)


def reflowed(text: str | None) -> str:
    """Return a docstring with each paragraph on one line, which the help wraps to the width of the terminal."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text or "").split("\n\n"))


def with_exit_code(command: Callable[P, int]) -> Callable[P, None]:
    """Return a function that exits with the code that the command returns, and reports any exception in one line."""

    @functools.wraps(command)
    def answer(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except BrokenPipeError:  # the reader of our output has exited, as `head` does
            drop_output()
            code = BROKEN_PIPE
        except KeyboardInterrupt as error:
            terminated = isinstance(error, Terminated)
            print_error("terminated" if terminated else "interrupted", kwargs)
            code = TERMINATED if terminated else INTERRUPTED
        except Exception as error:
            message = expected_message(error)
            print_error(crash_report(error, debug=Debugging.on) if message is None else message, kwargs)
            code = CRASHED if message is None else BAD_INPUT
        raise typer.Exit(code)

    answer.__doc__ = reflowed(command.__doc__)
    return answer


def expected_message(error: Exception) -> str | None:
    """Return the message of an exception that input, files or memory can cause; None for any other."""
    if isinstance(error, (InputError, MissingExtra)):
        return with_original_names(str(error))
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror or error}" if error.filename is not None else str(error)
    return "there is not enough memory for this data" if isinstance(error, MemoryError) else None


def print_error(message: str, options: Mapping[str, Any]) -> None:
    """Print an error to stderr and, with --json, as JSON to stdout."""
    with contextlib.suppress(OSError):  # if stderr or stdout is full, the exit code still says that something failed
        typer.echo(f"gordan: {escape_controls(message)}", err=True)
    if options.get("as_json"):
        with contextlib.suppress(OSError):
            print_json({"error": message})


@dataclass(frozen=True)
class Saved:
    """The outcome of writing a file: its `path`, or None if it was not written; and the `error`, if that failed."""

    path: str | None = None
    error: str | None = None

    @property
    def fields(self) -> dict[str, str]:
        """The fields that a failure adds to the JSON answer."""
        return {} if self.error is None else {"error": self.error}

    def exit_code(self, code: int) -> int:
        """Return this exit code if nothing failed; else print the error, after the answer, and return BAD_INPUT."""
        if self.error is None:
            return code
        print_error(self.error, {})
        return BAD_INPUT


def write_output(path: Path | None, write: Callable[[Path], object]) -> Saved:
    """Write a file, if one was asked for; an error is returned, so that an answer that took hours is still printed."""
    if path is None:
        return Saved()
    try:
        write(path)
    except BrokenPipeError:
        raise
    except Exception as error:
        message = expected_message(error)
        if message is None:
            raise
        return Saved(None, message)
    return Saved(str(path))


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM, which stops a command in the same way as Ctrl-C."""


class Interrupts:
    """A context that remembers Ctrl-C and SIGTERM, which functions catch in order to return what they have proved.

    `code` is the exit code for the signal, or None if there was none.
    """

    code: int | None = None

    @property
    def pressed(self) -> bool:
        """Whether a signal was received."""
        return self.code is not None

    @property
    def word(self) -> str:
        """The signal in a word."""
        return "terminated" if self.code == TERMINATED else "interrupted"

    def __enter__(self) -> Interrupts:
        self._before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            self._before = {which: signal.signal(which, self._press) for which in (signal.SIGINT, signal.SIGTERM)}
        return self

    def _press(self, which: int, _: FrameType | None) -> NoReturn:
        if which == signal.SIGTERM:
            self.code = TERMINATED
            raise Terminated
        self.code = INTERRUPTED
        raise KeyboardInterrupt

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        for which, before in self._before.items():
            if before is not None:  # None: the handler was not installed by Python
                signal.signal(which, before)
        # A signal during an import leaves an incomplete module, so an unexpected error after it is not a bug.
        if self.pressed and isinstance(error, Exception) and expected_message(error) is None:
            raise (Terminated() if self.code == TERMINATED else KeyboardInterrupt()) from error
