"""Write a file so that a reader sees either the old content or the new, never half of one."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gordan.errors import InputError


def write_atomic(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace `path` by `content` in one step: temporary file, fsync, rename, fsync of the folder.

    If anything fails on the way (a full disk, a lost permission) the old file is intact and the temporary one is gone; the
    OSError names `path`. A link stays one, and the file that it leads to is replaced. What is no regular file (a pipe, a
    terminal, /dev/null) is written to.
    """
    with naming(path):
        stream = _stream(path)
        if stream is None:
            _replace(Path(os.path.realpath(path)), content)
        else:
            with open(stream, "wb") as file:
                file.write(content)


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within: an OSError of writing says that it was `path` that could not be written."""
    try:
        yield
    except BrokenPipeError:  # whoever read it has gone
        raise
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror or error}", os.fspath(path)) from None


def require_writable(path: str | os.PathLike[str]) -> None:
    """Refuse, before anything is computed, a path that `write_atomic` could not write to."""
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; name a file to write")
    if os.path.exists(path) and not os.path.isfile(path):
        if not os.access(path, os.W_OK):
            raise InputError(f"{path} cannot be written: there is no permission to write to it")
        return
    folder = Path(os.path.realpath(path)).parent if os.path.islink(path) else Path(path).parent
    if not folder.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {folder}; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{path} cannot be written: there is no permission to write to the folder {folder}")


def _stream(path: str | os.PathLike[str]) -> str | os.PathLike[str] | int | None:
    """What to open if `path` is not to be replaced; None for a regular file, and where there is none yet.

    /dev/stdout may lead to a regular file to which more will be written: what is opened then is our own descriptor of it.
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
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
