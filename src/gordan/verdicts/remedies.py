"""What to do about data that is separated: lines of Python that fit what has estimates, where `d` is the diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gordan.arrays import is_sparse

FIRTH = "from firthmodels import FirthLogisticRegression  # pip install firthmodels"
ORDERED = "from statsmodels.miscmodels.ordinal_model import OrderedModel  # pip install statsmodels"


@dataclass(frozen=True)
class Remedies:
    """What the lines depend on: the design X, the names of its columns and which of them (`dependent`) are combinations of
    others; whether the model has a `constant` that is no column of X; whether there are weights; the `link`, in words, if it is
    another than the logit; and whether the model has an `offset`, which these lines do not have."""

    model: str
    X: Any
    names: Sequence[str] | None
    dependent: Sequence[str]
    constant: bool
    weighted: bool
    link: str = ""
    offset: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines; the last ones are estimates."""
        made = {"logistic": self._firth, "multinomial": self._ridge, "ordinal": self._ordered, "poisson": self._rest}
        return (*(("# the offset of the model is not in these lines",) if self.offset else ()), *made[self.model]())

    def _firth(self) -> tuple[str, ...]:
        """Firth's penalized likelihood, and a ridge."""
        own = "" if self.constant else "fit_intercept=False"
        like = (f"# logistic fits: a {self.link} regression is separated exactly where a logistic one is",) if self.link else ()
        firth = f"FirthLogisticRegression({own}).fit({self._dense}, d.y{self._weights}).coef_  # d is this diagnosis"
        return (*like, FIRTH, firth, *self._ridge())

    def _ridge(self) -> tuple[str, ...]:
        """A ridge, with proof."""
        own, told = ("free", "ridge") if self.constant else ("none", "ridge, the constant included")
        data = f"{self._columns}, d.y{self._weights}"
        return (f'gordan.minimize_loss({data}, loss="{self.model}", C=1.0, intercept="{own}").w  # {told}',)

    def _ordered(self) -> tuple[str, ...]:
        """The mode under normal priors of the coefficients, by name; then the thresholds, of which statsmodels has the first and
        the logarithms of the increments."""
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
        """The fit to the rows that are not separated, less the columns that depend on others there."""
        own = "free" if self.constant else "none"
        kept = "d.weights * ~d.separated" if self.weighted else "~d.separated"
        Z = "sm.add_constant(Z)" if self.constant else "Z"
        return (
            f"import {'' if hasattr(self.X, 'shape') else 'numpy, '}statsmodels.api as sm  # pip install statsmodels",
            f'rest = gordan.diagnose(d.X, d.y, model="poisson", intercept="{own}", sample_weight={kept})  # d is this diagnosis',
            f"Z = {self._rest_columns}",
            f"sm.GLM(rest.y, {Z}, family=sm.families.Poisson(), freq_weights=rest.weights).fit().params  # without those rows",
        )

    @property
    def _weights(self) -> str:
        return ", sample_weight=d.weights" if self.weighted else ""

    @property
    def _columns(self) -> str:
        """Those columns of `d.X` that do not depend on others."""
        if not hasattr(self.X, "shape"):
            return "d.X"
        names = self.names or [f"x{j}" for j in range(self.X.shape[1])]
        aliased = [name for name in names if name in self.dependent]
        if not aliased:
            return "d.X"
        if hasattr(self.X, "columns"):
            return f"d.X.drop(columns={aliased!r})"
        return f"d.X[:, {[j for j, name in enumerate(names) if name not in aliased]}]"

    @property
    def _dense(self) -> str:
        return f"{self._columns}.toarray()" if is_sparse(self.X) else self._columns

    @property
    def _rest_columns(self) -> str:
        """Those columns of `rest.X` that do not depend on others in the rows that are left."""
        if hasattr(self.X, "columns"):
            return "rest.X.drop(columns=[*rest.dependent])"
        X = "rest.X.toarray()" if is_sparse(self.X) else "rest.X" if hasattr(self.X, "shape") else "numpy.asarray(rest.X)"
        return f'{X}[:, ["x%d" % j not in rest.dependent for j in range({X}.shape[1])]]'
