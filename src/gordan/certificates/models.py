"""Rows made from data, for the models beside the logistic one: a certificate names the model, and every checker makes them anew.

The likelihood of each of these models is a concave function of A w, and increases forever along w just if A w ≥ 0 and A w ≠ 0.
With z_i = (1, x_i), or x_i where there is no intercept, the rows of A are, one observation after the other:

    multinomial   z_i ⊗ (e_c - e_j) for an observation of class c and every other class j, in the order of `classes`. Each class
                  but the first, the reference, has a block of coefficients; the reference has none.
    ordinal       P(y ≤ k) = F(θ_k - x·β) with θ_1 < θ_2 < …: of an observation of class k first x_i·β - θ_(k-1), which is not
                  there for the first class, then θ_k - x_i·β, which is not there for the last. Coefficients: θ, then β.
    poisson       z_i and -z_i where y_i > 0, -z_i where y_i = 0; so z_i·w = 0 and z_i·w ≤ 0 are asked for.

Multinomial: log p_i = -log Σ_j exp((w_j - w_c)·z_i) grows forever just if no (w_j - w_c)·z_i is positive and one is negative.
Ordinal: log(F(a) - F(b)) does where a does not fall, b does not rise, and one of them moves. Since every class has observations,
directions keep the order of θ. Poisson: y η - exp(η) falls without end both ways where y > 0, and rises as η falls where y = 0.
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
# Made rows of at most this many cells, or with this share of entries that are not 0, are stored densely if X is.
DENSE_CELLS, DENSE_SHARE = 1 << 20, 0.3


@dataclass(frozen=True, eq=False)
class Observations:
    """The data of a model: `which` is the class of each observation, by its place in `classes`; for counts, whether y > 0."""

    model: str
    X: Matrix
    which: Array
    classes: tuple[Label, ...]
    intercept: Intercept

    @staticmethod
    @ieee_floats()
    def of(model: str, X: Any, y: Any, intercept: Intercept) -> Observations:
        """Read X and y, or refuse them; classes are sorted."""
        storage = stored(X)
        require_aligned(X=X, y=y)
        if model == "poisson":
            return Observations(model, Matrix(storage), _positive(y, storage.n), (False, True), intercept)
        found, which = read_labels(y, storage.n)
        if len(found) == 1:
            raise InputError(f"y has one class only, {found[0]!r}; two are needed")
        return Observations(model, Matrix(storage), which, tuple(found), intercept)

    def ordered(self, classes: Sequence[Label]) -> Observations:
        """The same with the classes in this order."""
        if self.model == "poisson":
            return self
        place = {label: k for k, label in enumerate(classes)}
        return replace(self, which=np.array([place[label] for label in self.classes])[self.which], classes=tuple(classes))

    @property
    def shape(self) -> tuple[int, int]:
        """That of X."""
        return self.X.n, self.X.d

    def watched(self, given: Any) -> Observations:
        """As `Problem.watched`."""
        return replace(self, X=self.X.watched(given))

    def require_finite(self) -> None:
        """Refuse NaN and infinity, naming the entry."""
        require_finite(self.X.storage)

    @ieee_floats()
    def hash(self) -> str:
        """As `Problem.hash`, with the model after the intercept and the place of each label in four bytes."""
        self.X.require_unchanged("certificate")
        head = f"{','.join(map(class_text, self.classes))};{self.intercept};{self.model};"
        return hash_of(self.X, head, self.which.astype("<i4").tobytes())

    def made(self) -> tuple[Problem, Array]:
        """The rows of A as a problem without intercept, and the observation that each of them comes from."""
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
        dense = not is_sparse(given) and (cells <= DENSE_CELLS or A.nnz >= DENSE_SHARE * cells)
        return Problem(Matrix(stored(A.toarray() if dense else A)), signs.astype(np.int8), (False, True)), of

    def _pairs(self) -> tuple[Array, Array, Array]:
        """z ⊗ (e_later - e_earlier), with the sign that makes the observation's own class the positive one."""
        k, n = len(self.classes), self.X.n
        of = np.repeat(np.arange(n), k - 1)
        own, other = self.which[of], np.tile(np.arange(k - 1), n)
        other = other + (other >= own)
        factors = np.zeros((len(of), k))
        factors[np.arange(len(of)), np.maximum(own, other)] = 1.0
        factors[np.arange(len(of)), np.minimum(own, other)] = -1.0
        return of, factors[:, 1:], np.where(own > other, 1, -1)

    def _sides(self) -> tuple[Array, Array, Array]:
        """(-e_t, x) for the thresholds t of each observation: positive for the one below it, negative for the one above."""
        k, n = len(self.classes), self.X.n
        of, above = np.repeat(np.arange(n), 2), np.tile([0, 1], n)
        threshold = self.which[of] - 1 + above
        real = (threshold >= 0) & (threshold < k - 1)
        factors = np.zeros((np.count_nonzero(real), k - 1))
        factors[np.arange(len(factors)), threshold[real]] = -1.0
        return of[real], factors, 1 - 2 * above[real]

    def _counts(self) -> tuple[Array, Array, Array]:
        """z with both signs where y > 0, negative where y = 0."""
        of = np.repeat(np.arange(self.X.n), 1 + self.which)
        first = np.r_[True, of[1:] != of[:-1]] & (self.which[of] > 0)
        return of, np.ones((len(of), 1)), np.where(first, 1, -1)

    def names(self, columns: Sequence[str]) -> list[str]:
        """The names of the coefficients, in the order of A's columns, from those of X."""
        block = [INTERCEPT, *columns] if self.intercept.exists else [*columns]
        if self.model == "multinomial":
            return [f"{label}:{name}" for label in self.classes[1:] for name in block]
        if self.model == "ordinal":
            return [*(f"{a}|{b}" for a, b in zip(self.classes, self.classes[1:], strict=False)), *columns]
        return block

    def outward(self, proof: Certificate) -> Certificate:
        """A certificate about the made rows as one about the data, which names the model."""
        plain = replace(proof, lower=None, upper=None, rows=(), weights=()) if proof.kind == "separator" else proof
        return replace(plain, model=self.model, intercept=self.intercept.value, classes=self.classes, shape=self.shape)

    def inward(self, certificate: Certificate, made: Problem) -> Certificate:
        """The reverse: what the certificate says of the made rows."""
        return replace(certificate, model="logistic", intercept="none", classes=made.classes, shape=(made.X.n, made.X.d))


def _positive(y: Any, n: int) -> Array:
    """Whether each count is positive; counts may be any numbers that are not negative."""
    values = vector(np.asarray(host(y)), "y", n)
    bad = ~((values >= 0) & np.isfinite(values))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"y[{row}] is {values[row]:g}; counts of a Poisson regression are finite and not negative")
    return (values > 0).astype(np.int64)
