"""A program that uses gordan and has types: what a user's code looks like to mypy, which must find nothing wrong with it.

`tests/test_release.py` checks it with `mypy --strict` against the installed package, and runs it.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import gordan
from gordan import datasets, methods
from gordan.io import Model, Table, read


def told(X: NDArray[np.float64], y: NDArray[np.str_]) -> str:
    """The verdict on some data, in a line."""
    verdict: gordan.Verdict = gordan.separate(X, y, intercept="free", tol=1e-8, time_limit=60.0)
    if verdict.separable and verdict.w is not None and verdict.b is not None:
        lower, upper = verdict.margin
        nearest = float(abs(X @ verdict.w + verdict.b).min())
        return f"separable: {lower:.3g} to {upper:.3g}, here {nearest:.3g}"
    witness: gordan.Witness | None = verdict.witness
    return f"not separable: rows {witness.rows}" if witness is not None else f"open: {verdict.status}"


def checked(certificate: gordan.Certificate | None, X: NDArray[np.float64], y: NDArray[np.str_]) -> bool:
    """Whether a certificate holds after a journey as text."""
    if certificate is None:
        return False
    check: gordan.Check = gordan.verify(gordan.Certificate.from_json(certificate.to_json()), X, y)
    return check.accepted


def one_against_rest(X: NDArray[np.float64], Y: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> list[float]:
    """The margins, and the least squared hinge loss, of several label vectors, whose type says that they are columns."""
    verdicts: gordan.ManyVerdicts = gordan.separate(X, Y, time_limit=60.0)
    margins: gordan.ManyMargins = gordan.maximize_margin(X, Y)
    losses: gordan.ManyLosses = gordan.minimize_loss(X, Y, C=10.0)
    single: gordan.LossResult = losses[0]
    assert [verdict.status for verdict in verdicts] == verdicts.status.tolist()
    return [*(result.margin[0] for result in margins), single.objective[1]]


def stop(moment: gordan.Moment) -> bool:
    """A callback: stop once the bracket is as narrow as a thousandth."""
    return moment.gap < 1e-3


def fitted(X: NDArray[np.float64], y: NDArray[np.str_], folder: Path) -> tuple[float, ...]:
    """A classifier through a model file; how wide its margin is."""
    model = gordan.MaxMarginClassifier(nu=0.1, tol=1e-6).fit(X, y)
    model.save(folder / "iris.gordan")
    again = gordan.MaxMarginClassifier.load(folder / "iris.gordan")
    stored: Model = Model.load(folder / "iris.gordan")
    assert (again.predict(X) == model.predict(X)).all()
    assert (gordan.load(folder / "iris.gordan").coef_ == model.coef_).all()
    return tuple(float(end) for end in stored.margins[0])


def main() -> None:
    """Everything once."""
    X, y = datasets.iris("setosa")
    y = np.where(y > 0, "setosa", "another")
    print(told(X, y), checked(gordan.separate(X, y).certificate, X, y))

    result: gordan.MarginResult = gordan.maximize_margin(X, y, norm=2, method="auto", tol=1e-9)
    assert result.status == "solved"
    warm = gordan.maximize_margin(X, y, start=result, callback=stop)
    print(result.gap, warm.n_iter)

    one: np.ndarray[tuple[int], np.dtype[np.str_]] = y.ravel()
    loss: gordan.LossResult = gordan.minimize_loss(X, one, loss="logistic", tol=1e-6)
    print(loss.radius, one_against_rest(X, (y == "setosa").reshape(-1, 1) ^ np.array([[False, True]])))

    diagnosis: gordan.Diagnosis = gordan.diagnose(X, y)
    print(diagnosis.kind, diagnosis.columns)

    A = X * np.where(y == "setosa", 1.0, -1.0)[:, None]
    trace: gordan.Trace = gordan.play(A, methods.smooth_perceptron(eta=0.5), 100)
    print(methods.names(), trace.bracket, float(trace.dual[-1] - trace.m[-1]))

    with TemporaryDirectory() as name:
        print(fitted(X, y, Path(name)))
        np.savez(Path(name) / "iris.npz", X=X, y=y)
        table: Table = read(Path(name) / "iris.npz")
        print(table.X.shape)
    try:
        gordan.separate(X, np.where(y == "setosa", "one", "one"))
    except gordan.InputError as error:
        print(error)


if __name__ == "__main__":
    main()
