"""Write files atomically: a reader sees either the old content or the new, never a part of it."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from gordan.errors import InputError


def write_atomic(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace the content of a file atomically: temporary file, fsync, rename, fsync of the folder.

    If a step fails (a full disk, a missing permission), the old file is intact, the temporary file is removed, and the OSError
    names `path`. A symbolic link is kept, and its target is replaced. A pipe, a terminal or a device is written to directly.
    """
    with write_errors_at(path):
        stream = _special_file(path)
        if stream is None:
            _replace(Path(os.path.realpath(path)), content)
        else:
            with open(stream, "wb") as file:
                file.write(content)


@contextmanager
def write_errors_at(path: str | os.PathLike[str]) -> Iterator[None]:
    """Return a context in which every OSError is reported as a failure to write to `path`."""
    try:
        yield
    except BrokenPipeError:  # the reader of the pipe has exited, which the command line reports by its exit code
        raise
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror or error}", os.fspath(path)) from None


def flush_to_disk(file: IO[bytes]) -> None:
    """Return once everything that was written to the file is on disk."""
    file.flush()
    os.fsync(file.fileno())


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise an InputError, before anything is computed, if `write_atomic` could not write to this path."""
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; name a file to write")
    if os.path.exists(path) and not os.path.isfile(path):
        if not os.access(path, os.W_OK):
            raise InputError(f"{path} cannot be written: there is no permission to write to it")
        return
    folder = Path(os.path.realpath(path)).parent if os.path.islink(path) else Path(path).parent
    if not folder.is_dir():
        raise InputError(f"{path} cannot be written: the folder {folder} does not exist; create it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{path} cannot be written: there is no permission to write to the folder {folder}")


def _special_file(path: str | os.PathLike[str]) -> str | os.PathLike[str] | int | None:
    """Return what to open if `path` must not be replaced; None for a regular file and for a path that does not exist.

    /dev/stdout may be redirected to a regular file that receives more output later, so our own descriptor of it is duplicated.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    for descriptor in (1, 2):
        with suppress(OSError):  # it is closed
            if os.path.samestat(found, os.fstat(descriptor)):
                return os.dup(descriptor)
    return None if stat.S_ISREG(found.st_mode) else path


def _replace(target: Path, content: bytes) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            flush_to_disk(file)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
