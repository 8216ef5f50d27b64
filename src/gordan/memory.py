"""How much memory may be asked for. Whatever is larger than the data itself asks here first, and does without where it must."""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from pathlib import Path

# Less than this is asked for without a look.
SMALL = 1 << 26
# Of what is left, the share that one thing may take: estimates are rough, and others ask as well.
SHARE = 0.5
# Where the system tells of its memory, and mounts its control groups.
MEMINFO, OWN_GROUPS, GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
# Files of a control group, in version 2 and 1: the limit, what is in use, and the statistics with the entry for pages of files
# that count as in use but are given back when memory is needed.
FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
# A limit that is none, in version 1: whole pages up to the largest number of 64 bits.
UNLIMITED = 1 << 62


def fits(size: float) -> bool:
    """Whether so many bytes may be asked for: at most SHARE of what is left, and of what the limits of this process allow."""
    return size <= SMALL or _within(size, memory_left())


def largest(most: int, size: Callable[[int], float]) -> int:
    """The largest number up to `most` whose `size`, in bytes, fits; 1 at least. The size grows with the number."""
    if size(most) <= SMALL:
        return most
    left, least, beyond = memory_left(), 1, most + 1
    while beyond - least > 1:  # the first try is `most`, which is the answer as a rule
        middle = most if beyond > most else (least + beyond) // 2
        least, beyond = (middle, beyond) if size(middle) <= SMALL or _within(size(middle), left) else (least, middle)
    return least


def memory_left() -> float:
    """Bytes that the system has left for this process; infinite where it does not tell."""
    return min(_system(), _groups())


def _within(size: float, left: float) -> bool:
    return size <= SHARE * left and _allowed(size / SHARE)


def _allowed(size: float) -> bool:
    """Whether the limits of this process (RLIMIT_AS, RLIMIT_DATA) leave so many bytes: these are asked for, and given back."""
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
    """What the limits of the control groups of this process leave, each of which holds for all groups within."""
    try:
        lines = [line.split(":", 2) for line in OWN_GROUPS.read_text().splitlines()]
    except OSError:
        return math.inf
    left = math.inf
    for _, controllers, path in (line for line in lines if len(line) == 3):
        if controllers in FILES:
            group = Path(path.lstrip("/"))
            for part in (group, *group.parents):  # a container may see its own as the root, whatever its name is outside
                left = min(left, _left(GROUPS / controllers / part, *FILES[controllers]))
    return left


def _left(folder: Path, limit: str, usage: str, reclaimable: str) -> float:
    try:
        most = int((folder / limit).read_text())
        used = int((folder / usage).read_text()) if most < UNLIMITED else 0
    except (OSError, ValueError):  # no such group, or "max"
        return math.inf
    if most >= UNLIMITED:  # what is in use need not be read, which takes longer
        return math.inf
    try:
        statistics = (line.split() for line in (folder / "memory.stat").read_text().splitlines())
        used -= next(int(value) for name, value in statistics if name == reclaimable)
    except (OSError, ValueError, StopIteration):
        pass
    return float(max(0, most - used))
