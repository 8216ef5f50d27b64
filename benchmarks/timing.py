"""Timed calls in a worker process that has everything imported and compiled, and that is killed when a call outlasts its limit.

One worker runs gordan and the peers in turn, with the same threads; peers written in C cannot be interrupted otherwise. Short
calls are repeated and their median is taken.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import statistics
import time
from multiprocessing.connection import Connection
from typing import Any

# A call is repeated while it is shorter than this, up to so often and for so many seconds in all.
SHORT, REPEATS, ENOUGH = 0.5, 7, 1.5
# Seconds for preparing a call (reading the set, compiling), for repeating it, and beyond the limit for those that know of it.
PREPARING, REPEATING, GRACE = 240.0, 60.0, 5.0
KEEP_THEIR_LIMIT = ("gordan verdict", "gordan margin", "HiGHS", "Clarabel")


class Worker:
    """A process that answers `call`; a new one is started after a kill."""

    def __init__(self, threads: int) -> None:
        for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "RAYON"):
            os.environ[f"{name}_NUM_THREADS"] = str(threads)
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["peers", "sklearn.svm", "sklearn.linear_model", "scipy.optimize", "clarabel"])
        self.process: Any = None

    def call(
        self, peer: str, key: str, settings: dict[str, Any], intercept: str, nu: float | None, limit: float
    ) -> dict[str, Any]:
        """`seconds` (median), `errors` and `reached` of the plane, what the peer claims, `memory`; or `timeout`, or `failed`."""
        if self.process is None or not self.process.is_alive():
            self.pipe, far = self.context.Pipe()
            self.process = self.context.Process(target=serve, args=(far,), daemon=True)
            self.process.start()
            far.close()
        self.pipe.send((peer, key, settings, intercept, nu, limit))
        try:
            told = None
            for wait in (PREPARING, limit + (GRACE if peer in KEEP_THEIR_LIMIT else 0.0), REPEATING):
                if not self.pipe.poll(wait):
                    return self._killed("timeout", True, limit)
                told = self.pipe.recv()
                if isinstance(told, dict):  # else "started" or "finished once"
                    break
            return told
        except EOFError:
            return self._killed("failed", "the worker died", limit)

    def _killed(self, what: str, value: Any, limit: float) -> dict[str, Any]:
        self.close()
        return {"seconds": limit, what: value}

    def close(self) -> None:
        """End the worker."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def serve(pipe: Connection) -> None:
    """The worker: answer calls until the pipe closes."""
    import peers
    import sets

    warm: set[Any] = set()
    while True:
        try:
            peer, key, settings, intercept, nu, limit = pipe.recv()
        except EOFError:
            return
        try:
            data = sets.load(key)
            kind = (peer, intercept, nu is None, data.sparse, data.X.dtype.str)
            if kind not in warm:
                warm_up(peers, sets, data, peer, settings)
                warm.add(kind)
            call = peers.PEERS[peer](data, limit, **settings)
            gc.collect()
            pipe.send(timed(peers, data, call, intercept, nu, limit, pipe))
        except Exception as error:
            pipe.send({"seconds": limit, "failed": f"{type(error).__name__}: {error}"[:200]})


def warm_up(peers: Any, sets: Any, data: Any, peer: str, settings: dict[str, Any]) -> None:
    """The same call on small problems of the same storage; for us, who compile, also on some that have no separator, and on
    some that are not so small as to be solved without compiled code."""
    import scipy.sparse as sp

    problems = [("separable", 200, 20), ("separable", 60, 200)]
    if peer.startswith("gordan"):
        problems += [(kind, n, d) for kind in ("separable", "overlap") for n, d in ((200, 20), (300, 100), (3000, 20))]
    for kind, n, d in problems:
        small = sets.planted(kind, n, d)
        X = sp.csr_array(small.X) if data.sparse else small.X
        settings = settings if settings.get("nu") is None else settings | {"nu": 0.3}
        peers.PEERS[peer](sets.Data(kind, X.astype(data.X.dtype), small.y), 5.0, **settings).run()


def timed(peers: Any, data: Any, call: Any, intercept: str, nu: float | None, limit: float, pipe: Connection) -> dict[str, Any]:
    """Run once, and again if that was short; judge what came out."""
    before = forget_peak()
    pipe.send("started")
    times = []
    while True:
        begin = time.perf_counter()
        result = call.run()
        times.append(time.perf_counter() - begin)
        if len(times) == 1:
            memory = max(0, peak() - before)
            pipe.send("finished once")
        if times[0] > SHORT or len(times) == REPEATS or sum(times) > ENOUGH:
            break
    answer = call.answer(result)
    told = {"seconds": statistics.median(times), "fastest": min(times), "repeats": len(times), "memory": memory}
    told |= peers.worth(data, answer, intercept, nu) | (answer.claims or {})
    # a solver that obeys a time limit of its own returns what it has
    return told | {"timeout": True, "seconds": limit} if times[0] >= limit else told


def forget_peak() -> int:
    """Resident bytes now; the peak is counted from here (Linux; 0 elsewhere).

    What earlier calls have freed is handed back first, or else a call that uses it again would seem to need nothing.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as stream:
            stream.write("5")
        return _status("VmRSS")
    except (OSError, AttributeError):
        return 0


def peak() -> int:
    """The largest number of resident bytes since `forget_peak`."""
    try:
        return _status("VmHWM")
    except OSError:
        return 0


def _status(field: str) -> int:
    with open("/proc/self/status") as stream:
        return next(int(line.split()[1]) * 1024 for line in stream if line.startswith(field))
