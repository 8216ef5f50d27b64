"""What a command is: a function that returns its exit code, with examples; and how it ends, also when it is interrupted."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, ParamSpec, get_type_hints

import typer

from gordan.cli import BROKEN_PIPE, CRASHED, crash_report
from gordan.cli.answers import as_given, say_json, visible
from gordan.cli.fields import FIELDS
from gordan.errors import InputError, MissingExtra

ANSWERED, NO, BAD_INPUT, OPEN, INTERRUPTED = 0, 1, 2, 3, 130
# What `sysexits.h` calls a temporary failure: do the same again, and it goes on.
TERMINATED = 75
# Characters of a line of examples: a terminal has 80, and the help takes some at both ends.
ROOM = 75
# Before 0.28 typer made one line of lines, and left paragraphs without a space between.
BREAK = "\n" if tuple(map(int, typer.__version__.split(".")[:2])) >= (0, 28) else "\n\n"
P = ParamSpec("P")


class Debugging:
    """Whether tracebacks are asked for, by `--debug`."""

    on = False


@dataclass(frozen=True)
class Command:
    """A command of the program: what typer runs, and what its help ends with."""

    run: Callable[..., None]
    epilog: str


def command(*lines: str, fields: Mapping[str, str] | None = None) -> Callable[[Callable[..., int]], Command]:
    """Decorator: a command of a function that returns its exit code; `lines` are examples of its use, `fields` those of `--json`,
    by the name of the command or of a part of its answer.

    A parameter of the function whose type is a dataclass stands for all the options that are its fields.
    """
    FIELDS.update(fields or {})
    return lambda function: Command(answering(flattened(function)), examples(*lines))


def flattened(function: Callable[..., int]) -> Callable[..., int]:
    """The function with an option in place of each field of its parameters that are groups of options."""
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
    """Lines as the help shows them; what each does, behind it after some spaces, is put above where that does not fit."""
    if max(map(len, lines)) > ROOM:
        parts = [re.split(r" {3,}", line) for line in lines]
        lines = tuple(text for command, *told in parts for text in (*(f"# {each}" for each in told), command))
    return "[bold]Examples[/bold]\n\n" + BREAK.join(lines)


def flowing(text: str | None) -> str:
    """A docstring whose lines end where a paragraph does: the help breaks them where the terminal does."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text or "").split("\n\n"))


def answering(command: Callable[P, int]) -> Callable[P, None]:
    """A command that returns its exit code, with the errors that gordan raises by design told in one line each.

    So is any other exception, with an exit code that is no answer.
    """

    @functools.wraps(command)
    def answer(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except BrokenPipeError:  # whoever read our output has gone, as `head` does: 1 would mean "no"
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at exit
            code = BROKEN_PIPE
        except KeyboardInterrupt as error:
            terminated = isinstance(error, Terminated)
            complain("terminated" if terminated else "interrupted", kwargs)
            code = TERMINATED if terminated else INTERRUPTED
        except Exception as error:
            message = expected(error)
            complain(crash_report(error, debug=Debugging.on) if message is None else message, kwargs)
            code = CRASHED if message is None else BAD_INPUT
        raise typer.Exit(code)

    answer.__doc__ = flowing(command.__doc__)
    return answer


def expected(error: Exception) -> str | None:
    """What to say of an exception that comes with input, files and machines; None for any other."""
    if isinstance(error, (InputError, MissingExtra)):
        return as_given(str(error))
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror or error}" if error.filename is not None else str(error)
    return "there is not enough memory for this data" if isinstance(error, MemoryError) else None


def complain(message: str, options: Mapping[str, Any]) -> None:
    """Say on stderr what went wrong, and with --json on stdout as well."""
    with contextlib.suppress(OSError):  # where stderr or stdout is full, the exit code is what is left to say
        typer.echo(f"gordan: {visible(message)}", err=True)
    if options.get("as_json"):
        with contextlib.suppress(OSError):
            say_json({"error": message})


@dataclass(frozen=True)
class Saved:
    """What came of a file to write: the `path` where it is, None if there is none; and the `error`, if it failed."""

    path: str | None = None
    error: str | None = None

    @property
    def fields(self) -> dict[str, str]:
        """What the JSON of the answer says of a failure."""
        return {} if self.error is None else {"error": self.error}

    def ended(self, code: int) -> int:
        """The exit code of a command whose answer is printed; a failure is told now, and is its exit code."""
        if self.error is None:
            return code
        complain(self.error, {})
        return BAD_INPUT


def saved(path: Path | None, write: Callable[[Path], object]) -> Saved:
    """Write a file, if there is one to write. A failure is kept until the answer is printed, which may have taken hours."""
    if path is None:
        return Saved()
    try:
        write(path)
    except BrokenPipeError:
        raise
    except Exception as error:
        message = expected(error)
        if message is None:
            raise
        return Saved(None, message)
    return Saved(str(path))


class Terminated(KeyboardInterrupt):
    """SIGTERM: taken as the wish to stop with what there is, as Ctrl-C is."""


class Interrupts:
    """Within: Ctrl-C and SIGTERM are remembered, since the functions that keep what they have proved do not pass them on.

    `code` is the exit code that the signal asks for, None if there was none.
    """

    code: int | None = None

    @property
    def pressed(self) -> bool:
        """Whether there was a signal."""
        return self.code is not None

    @property
    def told(self) -> str:
        """What happened, in a word."""
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
            if before is not None:  # it was none of Python's
                signal.signal(which, before)
        # an import that the signal has cut leaves half a module: what fails then is no bug of ours
        if self.pressed and isinstance(error, Exception) and expected(error) is None:
            raise (Terminated() if self.code == TERMINATED else KeyboardInterrupt()) from error
