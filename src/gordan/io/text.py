"""Text files, plain or compressed, as blocks of whole lines whose numbers are counted."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import logging
import lzma
import math
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from gordan.errors import InputError

BLOCK = 1 << 23
# Shorter files are read line by line in Python: that takes less time than loading the compiled scanners.
SHORT = 1 << 20
MOST_PARSED = 1 << 10  # lines at a time
# Bytes without an end of a line after which CR is taken for one, where the file goes on.
NO_LINE = 1 << 20
# Bytes of a line: longer ones are not numbers but something that was packed to fill the memory.
MOST_LINE = 1 << 30

# The first line of a file that tells a spreadsheet what is between the columns.
SEP_LINE = re.compile(rb'"?sep=([^\r\n"])"?\r?\n', re.IGNORECASE)

COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}


def compression(start: bytes) -> str | None:
    """The kind of compression that a file with these first bytes has."""
    for magic, kind in COMPRESSED.items():
        if start.startswith(magic) and (kind != "bzip2" or start[4:10] in (b"1AY&SY", b"\x17rE8P\x90")):
            return kind
    return None


class Reader(Protocol):
    """Something that makes rows of the lines of a text."""

    text: Text

    @property
    def held(self) -> int:
        """How much was read and not yet handed on."""
        ...

    def scan(self) -> tuple[bool, int]:
        """Take plain lines of the block at full speed; whether the next line is none, and how many rows there were."""
        ...

    def parse(self, most: int) -> None:
        """Take that many lines in Python, or refuse one."""
        ...


def take_rows(reader: Reader, most: float = math.inf) -> None:
    """Take the whole file, or what makes the reader hold `most`.

    Plain lines are scanned; another kind of line is parsed, and more of them where scanning gets nowhere.
    """
    run = 1
    while reader.text.more() and reader.held < most:
        stopped, rows = (True, 0) if reader.text.short else reader.scan()
        if stopped:
            run = 1 if rows else min(2 * run, MOST_PARSED)
            reader.parse(run)


def _gunzip(file: IO[bytes]) -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=file)


# What the decompressors let out of damaged content, beside an OSError without a number.
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, ValueError)
UNPACKED: dict[str, Any] = {"gzip": _gunzip, "bzip2": bz2.BZ2File, "xz": lzma.LZMAFile}


def unpacked_size(path: Path, most: int) -> int:
    """Bytes of text in a file, compressed or not. Counting ends where they are more than `most`."""
    with path.open("rb") as raw:
        kind = compression(raw.peek(16)[:16])
        if kind is None:
            return path.stat().st_size
        size = 0
        with contextlib.suppress(*DAMAGED, OSError), UNPACKED[kind](raw) as file:
            while size <= most and (part := file.read(BLOCK)):  # a damaged end: whoever reads it says so
                size += len(part)
        return size


class Text:
    """A position in a text file: `block[at:]` is what was read and not yet taken, whole lines, the first being number `line`.

    NUL bytes and text that is not UTF-8 are refused here, with their line. A first line `sep=;` is skipped; `sep` is its mark.
    """

    def __init__(self, path: Path, start: tuple[int, int] = (0, 1)) -> None:
        """`start` is an earlier `place`: reading goes on there."""
        self.path, self.block, self.at, self.line = path, b"", 0, start[1]
        self._tail, self._ended, self._begin = b"", False, start[0]
        self._old_ends: bool | None = None  # whether lines end in CR alone: not known yet
        raw = path.open("rb")
        self._raw: IO[bytes] = raw
        self._size = path.stat().st_size
        self._file: Any = raw
        try:
            kind, named = compression(raw.peek(16)[:16]), SUFFIXES.get(path.suffix.lower())
            if named is not None and kind != named:
                raise InputError(
                    f"{path} is not a {named} file, although its name says so" if raw.peek(1) else f"{path} is empty"
                )
            if kind is not None:
                self._file = UNPACKED[kind](raw)
            if start[0]:
                self._skip(start[0])
            self._load()
        except BaseException:
            self.close()
            raise
        self.sep: str | None = None
        if not start[0]:
            self._skip_marks()
        self.short = self._ended and len(self.block) < SHORT

    def _skip_marks(self) -> None:
        """Go past the byte order mark, and the line that names the separator."""
        self.at = 3 if self.block.startswith(b"\xef\xbb\xbf") else 0
        if found := SEP_LINE.match(self.block, self.at):
            self.at, self.line, self.sep = found.end(), self.line + 1, found[1].decode(errors="replace")

    def __enter__(self) -> Text:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            self._file.close()
        self._raw.close()

    @property
    def place(self) -> tuple[int, int]:
        """The bytes of (unpacked) text before what is not yet taken, and the number of the line that comes next."""
        return self._begin + self.at, self.line

    def back_to(self, place: tuple[int, int]) -> None:
        """Have what was taken since this place, in the same block, once more."""
        self.at, self.line = place[0] - self._begin, place[1]

    def _skip(self, size: int) -> None:
        try:
            self._file.seek(size)
        except (*DAMAGED, OSError) as error:
            raise InputError(f"{self.path} is damaged or cut short: {error}") from None

    def more(self) -> bool:
        """Whether there is another line; it is in the block afterwards."""
        if self.at == len(self.block) and not self._ended:
            self._load()
        return self.at < len(self.block)

    def lines(self) -> Iterator[bytes]:
        """The lines that are left, each with its end, one taken at each step."""
        while self.more():
            end = self.block.index(b"\n", self.at) + 1
            line = self.block[self.at : end]
            self.at, self.line = end, self.line + 1
            yield line

    def _load(self) -> None:
        self._begin += len(self.block)
        parts = [self._tail]
        while not self._ended:
            part = self._read()
            cut = part.rfind(b"\n") + 1
            if cut and not self._ended:
                self.block, self._tail = b"".join([*parts, part[:cut]]), part[cut:]
                break
            parts.append(part)
            if sum(map(len, parts)) > MOST_LINE:
                raise InputError(f"{self.path}, line {self.line}: it has more than {MOST_LINE} bytes; this is not a table")
        else:
            whole = b"".join(parts)
            self.block, self._tail = whole if whole.endswith(b"\n") or not whole else whole + b"\n", b""
        self.at = 0
        self._check()

    def _check(self) -> None:
        if self.line == 1 and self.block[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError(f"{self.path} is UTF-16 text; save it as UTF-8")
        nul = self.block.find(b"\0")
        if nul >= 0:
            raise InputError(
                f"{self.path}, line {self.line_at(nul)}: there is a NUL byte; this is not a text file, or it is damaged"
            )
        if not self.block.isascii():
            try:
                self.block.decode()
            except UnicodeDecodeError as error:
                name, line = self.path.name, self.line_at(error.start)
                raise InputError(
                    f"{self.path}, line {line}: not UTF-8 text; save the file as UTF-8, or convert it: "
                    f"iconv -f WINDOWS-1252 -t UTF-8 {name} > utf8-{name}"
                ) from None

    def line_at(self, place: int) -> int:
        """The number of the line that holds byte `place` of the block."""
        return self.line + self.block.count(b"\n", self.at, place)

    def _read(self) -> bytes:
        """The next BLOCK bytes; fewer only at the end of the file."""
        parts, missing = [], BLOCK
        try:
            while missing > 0 and (part := self._file.read(missing)):
                parts.append(part)
                missing -= len(part)
        except DAMAGED as error:
            raise InputError(f"{self.path} is damaged or cut short: {error}") from None
        except OSError as error:
            if error.errno is not None:  # the disk, not the content
                raise
            raise InputError(f"{self.path} is damaged or cut short: {error}") from None
        self._ended = missing > 0
        found = b"".join(parts)
        if not self._ended and self._size > len(found):  # of a compressed file, how much of that was taken
            logging.getLogger("gordan").info("%.0f %% read", 100 * self._raw.tell() / self._size)
        if self._old_ends is None and found:  # as files of old Macs, and some spreadsheets, have
            self._old_ends = b"\r" in found and b"\n" not in found and (self._ended or len(found) >= NO_LINE)
        return found.replace(b"\r", b"\n") if self._old_ends else found
