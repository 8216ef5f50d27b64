"""How a search can end: one enumeration for all functions, each status with the sentence that tells it."""

from __future__ import annotations

from enum import StrEnum

STOPPED = "stopped ({word}): the largest margin{soft} is between {lower} and {upper} (proved{effort})"


class Status(StrEnum):
    """The status of an answer. A member equals its word, which is what users compare with and what files hold."""

    message: str

    def __new__(cls, word: str, message: str) -> Status:
        """A member with its message, in which facts are named in braces."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.message = message
        return member

    SEPARABLE = "separable", "separable: the largest margin is between {lower} and {upper} (proved)"
    NOT_SEPARABLE = "not-separable", "not separable: {witness} (proved)"
    MARGIN_BELOW_TOL = "margin-below-tol", "margin below tolerance: no margin{soft} exceeds {upper} (proved{effort})"
    UNDECIDED = "undecided", "undecided: the largest margin is at most {upper}"
    SOLVED = "solved", "solved: the largest margin{soft} is between {lower} and {upper} (proved{effort})"
    ITERATION_LIMIT = "iteration-limit", STOPPED
    TIME_LIMIT = "time-limit", STOPPED
    INTERRUPTED = "interrupted", STOPPED
    NO_PROGRESS = "no-progress", STOPPED

    def __repr__(self) -> str:
        """The word as text: users see what they compare with."""
        return repr(self.value)

    @property
    def separable(self) -> bool | None:
        """True or False where the status says so by itself, else None."""
        return {Status.SEPARABLE: True, Status.SOLVED: True, Status.NOT_SEPARABLE: False}.get(self)

    def told(self, **facts: object) -> str:
        """The sentence, with these facts; those that are not given are left out."""
        return self.message.format(**{"word": self.value, "soft": "", "effort": ""} | facts)


# What ends a search from outside.
LIMITS = (Status.ITERATION_LIMIT, Status.TIME_LIMIT, Status.INTERRUPTED)
