"""Passes for blocks of vectors, and second moments, held against a matrix A that is really there."""

from __future__ import annotations

import numpy as np


class Kept:
    """A block of rows that counts how often it is read."""

    def __init__(self, held):
        self.held, self.n, self.entries, self.loads = held, held.n, held.entries, 0

    def load(self):
        """The rows."""
        self.loads += 1
        return self.held


def log_total(soft):
    """The log-sum-exp of log p_0 - A v, of each group."""
    return np.add(soft.peak, soft.log_rest)


def passes_agree(made, A, W, P, rtol=1e-12, narrow=1e-12):
    """The rows `made` of A give A W, AᵀP, and moments with the weights |P|, all and some of them, up to rtol (moments: narrow)
    times what the terms add up to; a stored vector or block over them gives the entries of some rows."""

    def close(got, want, size, tolerance):
        got = got.numpy() if hasattr(got, "numpy") else np.asarray(got)
        assert got.shape == np.shape(want)
        assert (np.abs(got - want) <= tolerance * size + 1e-300).all(), np.abs(got - want).max()

    before, q, size = made.passes, np.abs(P[:, 0]), np.abs(A)
    close(made.scores(W), A @ W, size @ np.abs(W), rtol)
    close(made.combine(P), A.T @ P, size.T @ np.abs(P), rtol)
    assert made.passes == before + 2
    some = np.flatnonzero(np.arange(len(A)) % 3 != 1)
    for i in (None, some):
        B, h = (A, q) if i is None else (A[i], q[i])
        there = made.to_storage_f64 if made.storage.on_device else np.asarray
        products, sums, total = made.moments(q) if i is None else made.moments(there(h), there(i))
        close(products, (B.T * h) @ B, (np.abs(B).T * h) @ np.abs(B), narrow)
        close(sums, B.T @ h, np.abs(B).T @ h, narrow)
        close(total, h.sum(), h.sum(), narrow)
    assert made.passes == before + 3 + len(some) / len(A)
    for values in (q, P):
        there = made.storage.rows_of(made.storage.to_storage_f64(values), some)
        np.testing.assert_array_equal(made.storage.part(some).to_host(there), values[some])
