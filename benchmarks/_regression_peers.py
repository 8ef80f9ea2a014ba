"""The other solvers, each as a function of a problem, a penalty and a tolerance; no intercept.

A *variant* is a solver with fixed options. What its tolerance means is its own business: the benchmark tries tolerances
from loose to tight, until an independent gap is small enough. Versions: celer 0.7.4, skglm 0.5, adelie 1.1.52,
scikit-learn 1.9.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from _regression_problems import Problem
from numpy.typing import NDArray

Solve = Callable[[Problem, float, float], NDArray[Any]]
NEVER = 1_000_000  # iterations: the tolerance decides


@dataclass(frozen=True)
class Variant:
    """A solver with its options, and the tolerances to try."""

    solver: str
    options: str
    solve: Solve
    tolerances: tuple[float, ...]


def celer_lasso(problem: Problem, penalty: float, tol: float, **options: Any) -> NDArray[Any]:
    from celer import Lasso

    model = Lasso(penalty / len(problem.y), tol=tol, fit_intercept=False, max_iter=1000, **options)
    return model.fit(problem.X, problem.y).coef_


def celer_logistic(problem: Problem, penalty: float, tol: float, **options: Any) -> NDArray[Any]:
    from celer import LogisticRegression

    model = LogisticRegression(1.0 / penalty, tol=tol, fit_intercept=False, max_iter=1000, **options)
    return model.fit(problem.X, problem.y).coef_.ravel()


def skglm_lasso(problem: Problem, penalty: float, tol: float, **options: Any) -> NDArray[Any]:
    from skglm import Lasso

    model = Lasso(penalty / len(problem.y), tol=tol, fit_intercept=False, max_iter=1000, **options)
    return model.fit(problem.X, problem.y).coef_


def skglm_logistic(problem: Problem, penalty: float, tol: float, **options: Any) -> NDArray[Any]:
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Logistic
    from skglm.penalties import L1
    from skglm.solvers import AndersonCD, ProxNewton

    kind = {"cd": AndersonCD, "newton": ProxNewton}[options.pop("by")]
    solver = kind(tol=tol, fit_intercept=False, max_iter=1000, **options)
    model = GeneralizedLinearEstimator(Logistic(), L1(penalty / len(problem.y)), solver)
    return model.fit(problem.X, problem.y).coef_.ravel()


def adelie(problem: Problem, penalty: float, tol: float, *, steps: int, n_threads: int, **options: Any) -> NDArray[Any]:
    """Pathwise coordinate descent (Yang and Hastie 2024), down a path of so many penalties to the one wanted."""
    import adelie as ad

    samples = len(problem.y)
    top = problem.largest_penalty
    path = np.geomspace(top, penalty, steps + 1)[1:] / samples
    wrap = ad.matrix.sparse if sp.issparse(problem.X) else ad.matrix.dense
    logistic = problem.loss == "logistic"
    model = ad.glm.binomial((problem.y + 1.0) / 2.0) if logistic else ad.glm.gaussian(problem.y)
    if logistic:
        options["irls_tol"] = tol
    state = ad.grpnet(
        wrap(problem.X, n_threads=n_threads),
        model,
        lmda_path=path,
        intercept=False,
        early_exit=False,
        progress_bar=False,
        tol=tol,
        n_threads=n_threads,
        **options,
    )
    return state.betas[-1].toarray().ravel()


def sklearn_lasso(problem: Problem, penalty: float, tol: float) -> NDArray[Any]:
    """Cyclic coordinate descent; a Gram matrix (`precompute`) does not pay with more features than samples."""
    from sklearn.linear_model import Lasso

    model = Lasso(penalty / len(problem.y), tol=tol, fit_intercept=False, max_iter=NEVER)
    return model.fit(problem.X, problem.y).coef_


def sklearn_logistic(problem: Problem, penalty: float, tol: float, *, solver: str) -> NDArray[Any]:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        C=1.0 / penalty, l1_ratio=1.0, solver=solver, tol=tol, fit_intercept=False, max_iter=NEVER, random_state=0
    )
    return model.fit(problem.X_by_rows, problem.y).coef_.ravel()


def sklearn_svc(problem: Problem, penalty: float, tol: float, *, dual: bool) -> NDArray[Any]:
    """Coordinate descent on the dual with shrinking (Hsieh et al. 2008), or Newton steps on the primal."""
    from sklearn.svm import LinearSVC

    model = LinearSVC(C=1.0 / penalty, dual=dual, tol=tol, fit_intercept=False, max_iter=NEVER, random_state=0)
    return model.fit(problem.X_by_rows, problem.y).coef_.ravel()


def tolerances(first: int, last: int) -> tuple[float, ...]:
    return tuple(float(f"{digit}e-{power}") for power in range(first, last) for digit in (1, 0.3))


def variants(loss: str) -> list[Variant]:
    """All variants for a loss: options that were the fastest on some problem.

    Slower on all of them, or without the gap: celer without pruning and its coordinate descent for logistic loss, skglm
    with p0 1000, adelie without a path.
    """

    def make(name: str, solve: Callable[..., NDArray[Any]], first: int, last: int, /, **options: Any) -> Variant:
        label = ", ".join(f"{option} {value}" for option, value in options.items())
        return Variant(name, label, partial(solve, **options), tolerances(first, last))

    paths = [{"steps": steps, "n_threads": threads} for steps in (10, 30) for threads in (1, 2)]
    sets = [{"p0": p0, "ws_strategy": strategy} for p0 in (10, 100) for strategy in ("subdiff", "fixpoint")]
    if loss == "squared_hinge":
        return [
            make("liblinear", sklearn_svc, 1, 8, dual=True),
            make("liblinear, primal", sklearn_svc, 1, 10, dual=False),
        ]
    if loss == "quadratic":
        return [
            *(make("celer", celer_lasso, 5, 11, p0=p0, prune=True) for p0 in (10, 100)),
            *(make("skglm", skglm_lasso, 3, 11, **options) for options in sets),
            *(make("adelie", adelie, 8, 17, **options) for options in paths),
            make("scikit-learn", sklearn_lasso, 5, 10),
        ]
    return [
        *(make("celer", celer_logistic, 5, 11, p0=p0, solver="celer-pn") for p0 in (10, 100)),
        *(make("skglm", skglm_logistic, 3, 11, by="newton", **options) for options in sets),
        make("skglm", skglm_logistic, 6, 11, by="cd", p0=100, ws_strategy="subdiff"),
        *(make("adelie", adelie, 6, 17, **options) for options in paths),
        make("liblinear", sklearn_logistic, 3, 13, solver="liblinear"),
        make("saga", sklearn_logistic, 2, 10, solver="saga"),
    ]
