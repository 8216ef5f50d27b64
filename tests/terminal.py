"""A program whose progress is shown on a terminal, and which gets a signal when it has shown something."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading

# Seconds after which a program that neither ends nor shows anything more is killed.
LONGEST = 300.0


def signalled(command, number, shown, **options):
    """Exit code, standard output and what the terminal showed of a program that got the signal `number` once it showed `shown`.

    The terminal is read to the end, since a full one would hold the program up.
    """
    import pty  # of POSIX

    ours, theirs = pty.openpty()
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=theirs, text=True, **options) as process:
        os.close(theirs)
        stop = threading.Timer(LONGEST, process.kill)
        stop.daemon = True
        stop.start()
        seen, sent = b"", False
        with contextlib.suppress(OSError):  # EIO, when the program has closed its side
            while part := os.read(ours, 4096):
                seen += part
                if not sent and shown in seen:
                    process.send_signal(number)
                    sent = True
        told = process.stdout.read()
    stop.cancel()
    os.close(ours)
    return process.returncode, told, seen
