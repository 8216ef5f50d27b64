"""The rows A that multinomial, ordinal and Poisson regressions make from data.

A certificate about one of these models names the model, and every checker makes the rows again. The log-likelihood is a concave
function of A w, and it increases forever along w if and only if A w ≥ 0 and A w ≠ 0. With z_i = (1, x_i), or z_i = x_i without
an intercept, the rows of A are, one observation after the other:

    multinomial   z_i ⊗ (e_c - e_j) for an observation of class c and every other class j, in the order of `classes`. Each class
                  except the first, which is the reference, has a block of coefficients.
    ordinal       P(y ≤ k) = F(θ_k - x·β) with θ_1 < θ_2 < …: for an observation of class k the row of x_i·β - θ_(k-1), except
                  for the first class, and then that of θ_k - x_i·β, except for the last. The coefficients are θ, then β.
    poisson       z_i and -z_i if y_i > 0, and -z_i if y_i = 0, so that A w ≥ 0 means z_i·w = 0 or z_i·w ≤ 0.

Multinomial: log p_i = -log Σ_j exp((w_j - w_c)·z_i) increases forever if and only if no (w_j - w_c)·z_i is positive and at least
one is negative. Ordinal: log(F(a) - F(b)) does if a does not decrease, b does not increase, and one of them changes; since every
class has observations, such directions keep the order of θ. Poisson: y η - exp(η) tends to -∞ in both directions of η if y > 0,
and increases as η decreases if y = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gordan.arrays import Array, is_sparse, require_aligned, vector
from gordan.certificates.data import Certificate, Label
from gordan.certificates.matrix import Matrix
from gordan.certificates.problem import Problem, class_text, hash_of, read_labels
from gordan.errors import InputError
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept
from gordan.rows import host, require_finite, stored

INTERCEPT = "(intercept)"
# If X is dense, so are the rows of a model that have at most this many cells, or at least this share of nonzero entries.
DENSE_CELLS, DENSE_MODEL_SHARE = 1 << 20, 0.3


@dataclass(frozen=True, eq=False)
class Observations:
    """The data of a model; `which` is the position of each row's class in `classes`, and for counts 1 if y > 0, else 0."""

    model: str
    X: Matrix
    which: Array
    classes: tuple[Label, ...]
    intercept: Intercept

    @staticmethod
    @ieee_floats()
    def of(model: str, X: Any, y: Any, intercept: Intercept) -> Observations:
        """Read X and y; the classes are sorted. An InputError says what is wrong with them."""
        storage = stored(X)
        require_aligned(X=X, y=y)
        if model == "poisson":
            return Observations(model, Matrix(storage), _positive(y, storage.n), (False, True), intercept)
        found, which = read_labels(y, storage.n)
        if len(found) == 1:
            raise InputError(f"y has one class only, {found[0]!r}; two are needed")
        return Observations(model, Matrix(storage), which, tuple(found), intercept)

    def ordered(self, classes: Sequence[Label]) -> Observations:
        """Return the same observations with the classes in this order."""
        if self.model == "poisson":
            return self
        place = {label: k for k, label in enumerate(classes)}
        return replace(self, which=np.array([place[label] for label in self.classes])[self.which], classes=tuple(classes))

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of X."""
        return self.X.n, self.X.d

    def watched(self, given: Any) -> Observations:
        """Return the same observations with an X that notices later changes; see `Matrix.watched`."""
        return replace(self, X=self.X.watched(given))

    def require_finite(self) -> None:
        """Raise an InputError that names the entry if X has NaN or infinity."""
        require_finite(self.X.storage)

    @ieee_floats()
    def hash(self) -> str:
        """Return the hash of the data: that of `Problem.hash`, with the model after the intercept and labels as int32."""
        self.X.require_unchanged("certificate")
        head = f"{','.join(map(class_text, self.classes))};{self.intercept};{self.model};"
        return hash_of(self.X, head, self.which.astype("<i4").tobytes())

    def model_rows(self) -> tuple[Problem, Array]:
        """Return the rows of A as a problem without intercept, and the observation that each row comes from."""
        import scipy.sparse as sp

        of, factors, signs = {"multinomial": self._pairs, "ordinal": self._sides, "poisson": self._counts}[self.model]()
        given = self.X.storage.plain()
        Z = sp.csr_array(given, dtype=np.float64)
        if self.model == "ordinal":
            parts = [sp.csr_array(factors), Z[of]]
        else:
            ones = [sp.csr_array(np.ones((self.X.n, 1)))] if self.intercept.exists else []
            Z = sp.csr_array(sp.hstack([*ones, Z]))[of]
            parts = [sp.diags_array(block) @ Z for block in factors.T]
        A = sp.csr_array(sp.hstack(parts))
        A.sum_duplicates()
        A.eliminate_zeros()
        cells = A.shape[0] * A.shape[1]
        dense = not is_sparse(given) and (cells <= DENSE_CELLS or A.nnz >= DENSE_MODEL_SHARE * cells)
        return Problem(Matrix(stored(A.toarray() if dense else A)), signs.astype(np.int8), (False, True)), of

    def _pairs(self) -> tuple[Array, Array, Array]:
        """Return observations, factors and signs of the multinomial rows, each z ⊗ (e_later - e_earlier) times its sign.

        The sign makes the block of the observation's own class positive.
        """
        k, n = len(self.classes), self.X.n
        of = np.repeat(np.arange(n), k - 1)
        own, other = self.which[of], np.tile(np.arange(k - 1), n)
        other = other + (other >= own)
        factors = np.zeros((len(of), k))
        factors[np.arange(len(of)), np.maximum(own, other)] = 1.0
        factors[np.arange(len(of)), np.minimum(own, other)] = -1.0
        return of, factors[:, 1:], np.where(own > other, 1, -1)

    def _sides(self) -> tuple[Array, Array, Array]:
        """Return observations, threshold parts and signs of the ordinal rows, each (-e_t, x) times its sign.

        The sign is positive for the threshold t below the class of the observation and negative for the one above.
        """
        k, n = len(self.classes), self.X.n
        of, above = np.repeat(np.arange(n), 2), np.tile([0, 1], n)
        threshold = self.which[of] - 1 + above
        real = (threshold >= 0) & (threshold < k - 1)
        factors = np.zeros((np.count_nonzero(real), k - 1))
        factors[np.arange(len(factors)), threshold[real]] = -1.0
        return of[real], factors, 1 - 2 * above[real]

    def _counts(self) -> tuple[Array, Array, Array]:
        """Return observations, factors and signs of the Poisson rows: z with both signs if y > 0, with -1 if y = 0."""
        of = np.repeat(np.arange(self.X.n), 1 + self.which)
        first = np.r_[True, of[1:] != of[:-1]] & (self.which[of] > 0)
        return of, np.ones((len(of), 1)), np.where(first, 1, -1)

    def names(self, columns: Sequence[str]) -> list[str]:
        """Return the names of the coefficients, in the order of the columns of A, from the names of the columns of X."""
        block = [INTERCEPT, *columns] if self.intercept.exists else [*columns]
        if self.model == "multinomial":
            return [f"{label}:{name}" for label in self.classes[1:] for name in block]
        if self.model == "ordinal":
            return [*(f"{a}|{b}" for a, b in zip(self.classes, self.classes[1:], strict=False)), *columns]
        return block

    def to_data(self, proof: Certificate) -> Certificate:
        """Return a certificate about the rows of A as one about the data, which names the model."""
        plain = replace(proof, lower=None, upper=None, rows=(), weights=()) if proof.kind == "separator" else proof
        return replace(plain, model=self.model, intercept=self.intercept.value, classes=self.classes, shape=self.shape)


def _positive(y: Any, n: int) -> Array:
    """Return 1 for each positive count and 0 for each zero; counts may be any nonnegative finite numbers."""
    values = vector(np.asarray(host(y)), "y", n)
    bad = ~((values >= 0) & np.isfinite(values))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"y[{row}] is {values[row]:g}; counts of a Poisson regression are finite and not negative")
    return (values > 0).astype(np.int64)
