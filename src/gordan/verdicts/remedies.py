"""Lines of Python that fit estimates which exist although the data is separated; `d` in them is the diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gordan.arrays import is_sparse

FIRTH = "from firthmodels import FirthLogisticRegression  # pip install firthmodels"
# Firth's estimates of completely separated data take more steps than the default of the package, 25.
FIRTH_STEPS = "max_iter=1000"
SCALER = "from sklearn.preprocessing import StandardScaler"
ORDERED = "from statsmodels.miscmodels.ordinal_model import OrderedModel  # pip install statsmodels"


@dataclass(frozen=True)
class Remedies:
    """The lines for a model, and what they depend on.

    Attributes
    ----------
    model, X, names
        the model, its matrix, and the names of the columns of X, if it has names.
    dependent
        the names of columns that are combinations of others.
    constant
        whether the model has a constant that is not a column of X.
    constants
        the names of columns of X that are the constant.
    weighted
        whether the rows have weights.
    link
        the link of a binary or ordinal model, in words, if it is not the logit.
    offset
        whether the model has an offset, which these lines leave out.
    """

    model: str
    X: Any
    names: Sequence[str] | None
    dependent: Sequence[str]
    constant: bool
    weighted: bool
    constants: Sequence[str] = ()
    link: str = ""
    offset: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of code; the last ones evaluate to estimates."""
        made = {"logistic": self._firth, "multinomial": self._ridge, "ordinal": self._ordered, "poisson": self._rest}
        return (*(("# the offset of the model is not in these lines",) if self.offset else ()), *made[self.model]())

    def _firth(self) -> tuple[str, ...]:
        """Fit by Firth's penalized likelihood, and with a ridge penalty."""
        options = FIRTH_STEPS if self.constant else f"fit_intercept=False, {FIRTH_STEPS}"
        note = (f"# logistic fits: a {self.link} regression is separated exactly where a logistic one is",) if self.link else ()
        firth = f"FirthLogisticRegression({options}).fit({self._dense}, d.y{self._weights}).coef_  # d is this diagnosis"
        scaler, ridge = self._ridge()
        return (*note, FIRTH, scaler, firth, ridge)

    def _ridge(self) -> tuple[str, str]:
        """Fit with a ridge penalty, with proof.

        The penalty depends on the units of columns, so they are scaled, and it leaves out the constant. The columns of a model
        without a constant are not centred, which would add one; neither are sparse ones.
        """
        constant = self.constant or bool(self.constants)
        scaler = f"StandardScaler({'' if constant and not is_sparse(self.X) else 'with_mean=False'})"
        Z = f"{scaler}.fit_transform({self._without(*self.dependent, *self.constants)}{self._weights})"
        options = f'loss="{self.model}", C=1.0, intercept="{"free" if constant else "none"}"'
        note = "ridge of standardized columns, without penalty on the intercept" if constant else "ridge of scaled columns"
        return SCALER, f"gordan.minimize_loss({Z}, d.y{self._weights}, {options}).w  # {note}"

    def _ordered(self) -> tuple[str, ...]:
        """Maximize the likelihood of statsmodels' OrderedModel under normal priors of the coefficients.

        The parameters of statsmodels are the first threshold and the logarithms of the increments, hence the last line.
        """
        likelihood = "(d.weights * m.loglikeobs(b)).sum()" if self.weighted else "m.loglike(b)"
        Z = self._dense if hasattr(self.X, "shape") else "pandas.DataFrame(d.X)"
        distribution = "probit" if self.link == "probit" else "logit"
        other = f"  # in place of the {self.link} link" if self.link not in ("", "probit") else ""
        return (
            ORDERED,
            "import pandas, scipy.optimize",
            f"Z, order = {Z}, [*d.certificate.classes]  # d is this diagnosis",
            f'm = OrderedModel(pandas.Categorical(d.y, order, ordered=True).codes, Z, distr="{distribution}"){other}',
            f"b = scipy.optimize.minimize(lambda b: (b[:len(Z.T)] ** 2).sum() / 2 - {likelihood}, m.start_params).x",
            'dict(zip(getattr(Z, "columns", range(len(Z.T))), b))  # coefficients, with normal priors',
            "m.transform_threshold_params(b)[1:-1]  # thresholds between the classes",
        )

    def _rest(self) -> tuple[str, ...]:
        """Fit the rows that are not separated, without the columns that are combinations of others in these rows."""
        kept = "d.weights * ~d.separated" if self.weighted else "~d.separated"
        options = f'intercept="{"free" if self.constant else "none"}", sample_weight={kept}'
        Z = "sm.add_constant(Z)" if self.constant else "Z"
        return (
            f"import {'' if hasattr(self.X, 'shape') else 'numpy, '}statsmodels.api as sm  # pip install statsmodels",
            f'rest = gordan.diagnose(d.X, d.y, model="poisson", {options})  # d is this diagnosis',
            f"Z = {self._rest_columns}",
            f"sm.GLM(rest.y, {Z}, family=sm.families.Poisson(), freq_weights=rest.weights).fit().params  # without those rows",
        )

    @property
    def _weights(self) -> str:
        """The argument for the weights, if there are any."""
        return ", sample_weight=d.weights" if self.weighted else ""

    @property
    def _columns(self) -> str:
        """The columns of `d.X` that are not combinations of others."""
        return self._without(*self.dependent)

    def _without(self, *left_out: str) -> str:
        """Write `d.X` without these columns."""
        if not hasattr(self.X, "shape"):
            return "d.X"
        names = self.names or [f"x{j}" for j in range(self.X.shape[1])]
        dropped = [name for name in names if name in left_out]
        if not dropped:
            return "d.X"
        if hasattr(self.X, "columns"):
            return f"d.X.drop(columns={dropped!r})"
        return f"d.X[:, {[j for j, name in enumerate(names) if name not in dropped]}]"

    @property
    def _dense(self) -> str:
        """The same columns, as a dense matrix where `d.X` is sparse."""
        return f"{self._columns}.toarray()" if is_sparse(self.X) else self._columns

    @property
    def _rest_columns(self) -> str:
        """The columns of `rest.X` that are not combinations of others in the rows that are left."""
        if hasattr(self.X, "columns"):
            return "rest.X.drop(columns=[*rest.dependent])"
        X = "rest.X.toarray()" if is_sparse(self.X) else "rest.X" if hasattr(self.X, "shape") else "numpy.asarray(rest.X)"
        return f'{X}[:, ["x%d" % j not in rest.dependent for j in range({X}.shape[1])]]'
