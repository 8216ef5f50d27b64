"""The statuses of answers, one enumeration for all questions about data, and the endings of runs, each with its message.

A run proves nothing. Its ending, which is the status of its `gordan.trace.Trace`, only says why it ended.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

STOPPED = "stopped ({word}): the largest margin{soft} is between {lower} and {upper} (proved{effort})"


class Word(StrEnum):
    """A word with a message. A member equals its word, which is what users compare with and what files hold."""

    message: str

    def __new__(cls, word: str, message: str = "") -> Self:
        """Make a member with its message, which has the names of facts in braces."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.message = message
        return member

    def __repr__(self) -> str:
        """Return the word as text, because it is what users compare with."""
        return repr(self.value)


class Status(Word):
    """The status of an answer."""

    SEPARABLE = "separable", "separable: the largest margin is between {lower} and {upper} (proved)"
    NOT_SEPARABLE = "not-separable", "not separable: {witness} (proved)"
    MARGIN_BELOW_TOL = "margin-below-tol", "margin below tolerance: no margin{soft} exceeds {upper} (proved{effort})"
    UNDECIDED = "undecided", "undecided: the largest margin is at most {upper}"
    SOLVED = "solved", "solved: the largest margin{soft} is between {lower} and {upper} (proved{effort})"
    ITERATION_LIMIT = "iteration-limit", STOPPED
    TIME_LIMIT = "time-limit", STOPPED
    INTERRUPTED = "interrupted", STOPPED
    NO_PROGRESS = "no-progress", STOPPED

    @property
    def separable(self) -> bool | None:
        """True or False if the status alone says whether the data is separable, else None."""
        return {Status.SEPARABLE: True, Status.SOLVED: True, Status.NOT_SEPARABLE: False}.get(self)

    def describe(self, **facts: object) -> str:
        """Return the message with these facts; facts that are not given are left out."""
        return self.message.format(**{"word": self.value, "soft": "", "effort": ""} | facts)


class Ending(Word):
    """Why a run ended; the message is about its last round."""

    FINISHED = "finished", "finished after round {t}"
    ROUNDS = "rounds", "stopped: round limit ({t})"
    TIME_LIMIT = "time-limit", "stopped: time limit (round {t})"
    CALLBACK = "callback", "stopped by the callback after round {t}"
    INTERRUPTED = "interrupted", "interrupted after round {t}"


# The statuses of a search that was ended from outside.
LIMITS = (Status.ITERATION_LIMIT, Status.TIME_LIMIT, Status.INTERRUPTED)
