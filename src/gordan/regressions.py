"""The regressions whose estimates can be infinite, as `diagnose` and its certificates name them."""

from __future__ import annotations

from enum import StrEnum


class Regression(StrEnum):
    """A regression; the values are the words that users pass and that files contain."""

    LOGISTIC = "logistic"
    MULTINOMIAL = "multinomial"
    ORDINAL = "ordinal"
    POISSON = "poisson"

    @property
    def of_classes(self) -> bool:
        """Whether y may have more than two classes."""
        return self in (Regression.MULTINOMIAL, Regression.ORDINAL)

    @property
    def in_words(self) -> str:
        """The name of the regression in a sentence, with its article."""
        return {Regression.ORDINAL: "an ordinal", Regression.POISSON: "a Poisson"}.get(self, f"a {self}") + " regression"
