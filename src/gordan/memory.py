"""How much memory may be allocated: code that needs more than the data itself asks here first, and does without if it must."""

from __future__ import annotations

import math
import mmap
from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

# Allocations of up to this many bytes are allowed without a check.
UNCHECKED_BYTES = 1 << 26
# The share of the available memory that one allocation may take, because estimates are rough and there are other allocations.
MAX_SHARE = 0.5
# Where Linux reports its memory and the control groups of a process, and where these are mounted.
MEMINFO, OWN_GROUPS, GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
# The files of a control group with the limit and the usage, and the entry of its statistics for file pages, which count as used
# but can be reclaimed; for cgroups v2 ("") and v1 ("memory").
FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
# Limits from here on mean "unlimited": version 1 states the largest multiple of a page in 64 bits.
NO_LIMIT_BYTES = 1 << 62


def fits(size: float) -> bool:
    """Return whether this many bytes may be allocated: at most MAX_SHARE of the available memory and of the process limits."""
    return size <= UNCHECKED_BYTES or _within(size, memory_left())


def largest(most: int, size: Callable[[int], float]) -> int:
    """Return the largest number up to `most`, at least 1, whose `size` in bytes fits; the size increases with the number."""
    if fits(size(most)):  # as it usually does
        return most
    left = memory_left()
    return max(1, bisect_left(range(1, most), True, key=lambda m: size(m) > UNCHECKED_BYTES and not _within(size(m), left)))


def memory_left() -> float:
    """Return the bytes that the system has available for this process, infinite if unknown."""
    return min(_system(), _groups())


def _within(size: float, left: float) -> bool:
    return size <= MAX_SHARE * left and _allowed(size / MAX_SHARE)


def _allowed(size: float) -> bool:
    """Return whether the limits of this process (RLIMIT_AS, RLIMIT_DATA) allow this many bytes, by a trial allocation."""
    try:
        mmap.mmap(-1, math.ceil(size), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, OverflowError, ValueError):
        return False
    return True


def _system() -> float:
    try:
        lines = MEMINFO.read_text().splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, ValueError, IndexError, StopIteration):
        return math.inf


def _groups() -> float:
    """Return the bytes that the limits of the control groups of this process, and of the groups that contain them, allow."""
    try:
        own = OWN_GROUPS.read_text()
    except OSError:
        return math.inf
    return min((_left(*files) for files in _files(own, GROUPS)), default=math.inf)


@lru_cache(maxsize=1)
def _files(own: str, groups: Path) -> list[tuple[str, str, str, str]]:
    """Return the files with the limit, the usage and the statistics of each group, and the name of its file pages.

    `own` lists the groups of this process.
    """
    found = []
    for _, controllers, path in (line.split(":", 2) for line in own.splitlines() if line.count(":") >= 2):
        if controllers in FILES:
            limit, usage, reclaimable = FILES[controllers]
            group = Path(path.lstrip("/"))
            for part in (group, *group.parents):  # a container may see its own group as the root, whatever its name outside
                folder = groups / controllers / part
                found.append((str(folder / limit), str(folder / usage), str(folder / "memory.stat"), reclaimable))
    return found


def _left(limit: str, usage: str, statistics: str, reclaimable: str) -> float:
    try:
        most = int(_text(limit))
        used = int(_text(usage)) if most < NO_LIMIT_BYTES else 0
    except (OSError, ValueError):  # no such group, or "max"
        return math.inf
    if most >= NO_LIMIT_BYTES:  # the statistics, which take longer to read, are not needed
        return math.inf
    try:
        entries = (line.split() for line in _text(statistics).splitlines())
        used -= next(int(value) for name, value in entries if name == reclaimable)
    except (OSError, ValueError, StopIteration):
        pass
    return float(max(0, most - used))


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()
