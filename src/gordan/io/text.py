"""Read text files, plain or compressed, in blocks of complete lines with their line numbers."""

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
# Shorter files are parsed in Python, which takes less time than loading the compiled scanners.
SHORT = 1 << 20
MAX_PARSED_LINES = 1 << 10  # lines that are parsed in Python before the scanner is tried again
# If this many bytes contain CR but no LF, and the file goes on, lines are taken to end in CR.
MIN_CR_ONLY = 1 << 20
# Longer lines are not data; a malicious compressed file may contain one to exhaust memory.
MAX_LINE_BYTES = 1 << 30

# A first line that tells a spreadsheet which separator the file has.
SEP_LINE = re.compile(rb'"?sep=([^\r\n"])"?\r?\n', re.IGNORECASE)

COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}


def compression(start: bytes) -> str | None:
    """Return the compression of a file that starts with these bytes; None if it is not compressed."""
    for magic, kind in COMPRESSED.items():
        if start.startswith(magic) and (kind != "bzip2" or start[4:10] in (b"1AY&SY", b"\x17rE8P\x90")):
            return kind
    return None


class Reader(Protocol):
    """A parser that turns the lines of a text into rows."""

    text: Text

    @property
    def held(self) -> int:
        """How much has been read and not yet handed on."""
        ...

    def scan(self) -> tuple[bool, int]:
        """Read plain lines of the block with compiled code; return whether it stopped before another line, and the rows read."""
        ...

    def parse(self, most: int) -> None:
        """Read at most this many lines in Python, and raise an InputError for one that is invalid."""
        ...


def read_rows(reader: Reader, most: float = math.inf) -> None:
    """Read the rest of the file, or until the reader holds `most`.

    Plain lines are scanned. Other lines are parsed, and increasingly many at a time as long as the scanner makes no progress.
    """
    run = 1
    while reader.text.more() and reader.held < most:
        stopped, rows = (True, 0) if reader.text.short else reader.scan()
        if stopped:
            run = 1 if rows else min(2 * run, MAX_PARSED_LINES)
            reader.parse(run)


# The exceptions of the decompressors for damaged content, beside an OSError without errno.
DECOMPRESSION_ERRORS = (EOFError, zlib.error, lzma.LZMAError, ValueError)
DECOMPRESSORS: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}


def decompressed_size(path: Path, most: int) -> int:
    """Return the size of a file after decompression, in bytes; counting stops as soon as it exceeds `most`."""
    with path.open("rb") as raw:
        kind = compression(raw.peek(16)[:16])
        if kind is None:
            return path.stat().st_size
        size = 0
        with contextlib.suppress(*DECOMPRESSION_ERRORS, OSError), DECOMPRESSORS[kind](raw) as file:
            while size <= most and (part := file.read(BLOCK)):  # damage is reported when the file is read
                size += len(part)
        return size


class _Source:
    """The bytes of a file after decompression, read in blocks, until it `ended`; line ends of CR alone become LF."""

    def __init__(self, path: Path, start: int) -> None:
        """Open the file, and continue at byte `start`."""
        self._path, self.ended = path, False
        self._cr_only: bool | None = None  # whether lines end in CR alone; None until that is known
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
                self._file = DECOMPRESSORS[kind](raw)
            if start:  # a pipe cannot seek
                with self._refusing_damage():
                    self._file.seek(start)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            self._file.close()
        self._raw.close()

    @contextlib.contextmanager
    def _refusing_damage(self) -> Iterator[None]:
        """Return a context in which errors of a decompressor are an InputError, but not those of the disk."""
        try:
            yield
        except (*DECOMPRESSION_ERRORS, OSError) as error:
            if getattr(error, "errno", None) is not None:
                raise
            raise InputError(f"{self._path} is damaged or cut short: {error}") from None

    def read(self) -> bytes:
        """Return the next BLOCK bytes, or fewer at the end of the file."""
        parts, missing = [], BLOCK
        with self._refusing_damage():
            while missing > 0 and (part := self._file.read(missing)):
                parts.append(part)
                missing -= len(part)
        self.ended = missing > 0
        found = b"".join(parts)
        if not self.ended and self._size > len(found):  # the share of the compressed bytes, if the file is compressed
            logging.getLogger("gordan").info("%.0f %% read", 100 * self._raw.tell() / self._size)
        if self._cr_only is None and found:  # old Macs and some spreadsheets write such files
            self._cr_only = b"\r" in found and b"\n" not in found and (self.ended or len(found) >= MIN_CR_ONLY)
        return found.replace(b"\r", b"\n") if self._cr_only else found


class Text:
    """A position in a text file.

    `block[at:]` are the complete lines that were loaded but not yet consumed, and `line` is the number of the first of them. NUL
    bytes and invalid UTF-8 are refused with their line. A first line such as `sep=;` is skipped, and `sep` is its separator.
    """

    def __init__(self, path: Path, start: tuple[int, int] = (0, 1)) -> None:
        """Open the file, and continue at `start`, an earlier value of `place`."""
        self.path, self.block, self.at, self.line = path, b"", 0, start[1]
        self._tail, self._begin = b"", start[0]
        self._source = _Source(path, start[0])
        try:
            self._load()
        except BaseException:
            self.close()
            raise
        self.sep: str | None = None
        if not start[0]:
            self._skip_marks()
        self.short = self._source.ended and len(self.block) < SHORT

    def _skip_marks(self) -> None:
        """Skip the byte order mark and the line that names the separator."""
        self.at = 3 if self.block.startswith(b"\xef\xbb\xbf") else 0
        if found := SEP_LINE.match(self.block, self.at):
            self.at, self.line, self.sep = found.end(), self.line + 1, found[1].decode(errors="replace")

    def __enter__(self) -> Text:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    @property
    def place(self) -> tuple[int, int]:
        """The offset in the decompressed text, and the number, of the next line."""
        return self._begin + self.at, self.line

    def rewind_to(self, place: tuple[int, int]) -> None:
        """Go back to an earlier place in the same block."""
        self.at, self.line = place[0] - self._begin, place[1]

    def more(self) -> bool:
        """Return whether there is another line, and load it into the block if so."""
        if self.at == len(self.block) and not self._source.ended:
            self._load()
        return self.at < len(self.block)

    def lines(self) -> Iterator[bytes]:
        """Yield the remaining lines, each with its end, and consume them one by one."""
        while self.more():
            end = self.block.index(b"\n", self.at) + 1
            line = self.block[self.at : end]
            self.at, self.line = end, self.line + 1
            yield line

    def _load(self) -> None:
        self._begin += len(self.block)
        parts = [self._tail]
        while not self._source.ended:
            part = self._source.read()
            cut = part.rfind(b"\n") + 1
            if cut and not self._source.ended:
                self.block, self._tail = b"".join([*parts, part[:cut]]), part[cut:]
                break
            parts.append(part)
            if sum(map(len, parts)) > MAX_LINE_BYTES:
                raise InputError(f"{self.path}, line {self.line}: it has more than {MAX_LINE_BYTES} bytes; this is not a table")
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
                    f"{self.path}, line {line}: this is not UTF-8 text; save the file as UTF-8, or convert it: "
                    f"iconv -f WINDOWS-1252 -t UTF-8 {name} > utf8-{name}"
                ) from None

    def line_at(self, place: int) -> int:
        """Return the number of the line that contains byte `place` of the block."""
        return self.line + self.block.count(b"\n", self.at, place)
