"""The suites of other packages that run with our classes in place of theirs."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from adapting import Options, adapted


def _gap(tol: float) -> float:
    """The duality gap, relative to the objective at 0, of about the accuracy of a gradient of `tol`."""
    return max(tol**2, 1e-14)


def _logistic(options: Options) -> Mapping[str, Any]:
    share = 1.0 if options["penalty"] == "l1" else options.get("l1_ratio") or 0.0
    return {
        "tol": _gap(options["tol"]),
        "solver": None,
        "l1_ratio": share,
        "verbose": bool(options["verbose"]),
        "penalty": "elasticnet",
    }


def _logistic_cv(options: Options) -> Mapping[str, Any]:
    ratios = options["l1_ratios"]
    return {
        "tol": _gap(options["tol"]),
        "solver": None,
        "penalty": "elasticnet",
        "scoring": None if options["scoring"] == "warn" else options["scoring"],
        "l1_ratios": (0.0,) if ratios is None or isinstance(ratios, str) else ratios,
        "verbose": bool(options["verbose"]),
    }


def _l1_logistic(options: Options) -> Mapping[str, Any]:
    return {"solver": None, "penalty": "l1", "verbose": bool(options["verbose"])}


def _celer_cv(options: Options) -> Mapping[str, Any]:
    return {"alphas": options["n_alphas"] if options["alphas"] is None else options["alphas"]}


def _topics(options: Options) -> Mapping[str, Any]:
    return {"evaluate_every": max(options["evaluate_every"] or 0, 0)}


@dataclass(frozen=True)
class Swap:
    """A class of a peer, `module:name`, and ours in its place: an estimator, or `module:name` of a facade."""

    peer: str
    ours: str
    translate: Callable[[Options], Mapping[str, Any]] = lambda options: {}

    def adapter(self) -> type:
        """Our class with the constructor of the peer's, or the facade."""
        if ":" in self.ours:
            facade: type = _found(self.ours)
            return facade
        return adapted(_found(f"strads.models:{self.ours}"), _found(self.peer), self.translate)


@dataclass(frozen=True)
class Suite:
    """Modules of tests, and the classes that are replaced in them.

    `source` is the package whose source archive has the tests, where the installed package does not; `tests` are then
    files of the archive.
    """

    tests: tuple[str, ...]
    swaps: tuple[Swap, ...]
    source: str | None = None


def _found(place: str) -> Any:
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)


def _same(module: str, *names: str) -> tuple[Swap, ...]:
    return tuple(Swap(f"{module}:{name}", name) for name in names)


_LASSOS = ("ElasticNet", "ElasticNetCV", "Lasso", "LassoCV")
SUITES = {
    "sklearn-lasso": Suite(
        ("sklearn.linear_model.tests.test_coordinate_descent",),
        _same("sklearn.linear_model", *_LASSOS, "MultiTaskElasticNet", "MultiTaskLasso"),
    ),
    "sklearn-logistic": Suite(
        ("sklearn.linear_model.tests.test_logistic",),
        (
            Swap("sklearn.linear_model:LogisticRegression", "LogisticRegression", _logistic),
            Swap("sklearn.linear_model:LogisticRegressionCV", "LogisticRegressionCV", _logistic_cv),
        ),
    ),
    "sklearn-svc": Suite(("sklearn.svm.tests.test_svm",), _same("sklearn.svm", "LinearSVC")),
    "sklearn-lda": Suite(
        ("sklearn.decomposition.tests.test_online_lda",),
        (Swap("sklearn.decomposition:LatentDirichletAllocation", "LatentDirichletAllocation", _topics),),
    ),
    "celer-lasso": Suite(
        ("celer.tests.test_lasso", "celer.tests.test_enet"),
        (
            *_same("celer", "ElasticNet", "Lasso"),
            *_same("celer.dropin_sklearn", "Lasso"),
            Swap("celer:ElasticNetCV", "ElasticNetCV", _celer_cv),
            Swap("celer.dropin_sklearn:LassoCV", "LassoCV", _celer_cv),
        ),
    ),
    "celer-logistic": Suite(
        ("celer.tests.test_logreg",),
        (Swap("celer.dropin_sklearn:LogisticRegression", "LogisticRegression", _l1_logistic),),
    ),
    "celer-multitask": Suite(("celer.tests.test_mtl",), _same("celer", "Lasso", "MultiTaskLasso")),
    "skglm": Suite(
        ("skglm.tests.test_estimators",),
        (
            *_same("skglm.estimators", "Lasso", "ElasticNet", "MultiTaskLasso"),
            Swap("skglm.estimators:LinearSVC", "LinearSVC", lambda options: {"loss": "hinge"}),
        ),
    ),
    "implicit-bpr": Suite(
        ("tests/bpr_test.py",),
        (Swap("implicit.bpr:BayesianPersonalizedRanking", "implicit_facade:BayesianPersonalizedRanking"),),
        source="implicit",
    ),
    "gensim-word2vec": Suite(
        ("gensim.test.test_word2vec",),
        (Swap("gensim.models.word2vec:Word2Vec", "gensim_facade:Word2Vec"),),
    ),
    "gensim-lda": Suite(
        ("gensim.test.test_ldamodel",),
        (
            Swap("gensim.models.ldamodel:LdaModel", "gensim_facade:LdaModel"),
            Swap("gensim.models.ldamulticore:LdaMulticore", "gensim_facade:LdaModel"),
        ),
    ),
}

# What tests are about that fail for a reason: a pattern of their names → the reason.
_WARNINGS = "warns of an option that the peer deprecates, or of a choice that we make no difference between"
_SOLVER = "an option or a limit of one of the peer's algorithms"
_LAYOUT = "attributes in the layout that scikit-learn 1.10 gives up"
_PRIVATE = "private functions and attributes of the peer"
_TEXT = "the words of a message, or lines that are printed"
_SOFTMAX = "hierarchical softmax"
_OLD = "files of older versions of the peer"
ELSEWHERE = {
    "penalty_deprecated|use_legacy_attributes|l1_ratio_None|warns_with_n_jobs|scoring_warns": _WARNINGS,
    "l1_ratio_non_elasticnet|penalty_l1ratio_incompatible|test_penalty_none|test_lasso_alpha_warning": _WARNINGS,
    "check_solver_option|l1_ratio_err_helpful|liblinear_dual|liblinear_multiclass|dtype_match.*liblinear": _SOLVER,
    "large_sparse_matrix|newton_cholesky_fallback|warm_start_newton_solver|liblinear_with_large": _SOLVER,
    "precompute|overridden_gram|copy_X|check_input|sample_weight_does_not_overwrite|random_descent": _SOLVER,
    "test_max_iter": "messages of the peer's solvers, and how many iterations they take",
    "linearsvc_parameters|svm_convergence_warnings|raise_errors_l1_ratio": _SOLVER,
    "crammer_singer": "the option multi_class",
    "raises_convergence|alphas_validation|nonfinite_params|multi_task_lasso_and_enet$": _TEXT,
    "test_verbosity|no_component_error|lda_negative_input": _TEXT,
    "test_logistic_cv$|test_logistic_cv.42|multinomial_cv_iris|test_n_iter.*|CV_no_refit|attribute_shapes": _LAYOUT,
    "scores_attribute_layout|CV_on_folds|CV_GridSearchCV_elastic_net": _LAYOUT,
    "predict_proba_multinomial|get_default_scorer|perplexity_mismatch|lda_dtype_match|preplexity": _PRIVATE,
    "callback": "the callbacks of scikit-learn 1.9: ours are on_iteration",
    "folds_with_classes_missing": "a class that a fold lacks is an error",
    "zero_max_iter": "max_iter=0 is an error",
    "string_inputs": "a class of weight 0 is an error",
    "empty_docs": "a collection without any word is an error",
    "perplexity|lda_transform$|fit_batch|fit_online|numerical_consistency": "variational inference, where ours draws",
    "no_routing_enabled|metadata_routing|is_requested": "metadata routing",
    "warm_start_convergence|test_warm_start.(Lasso|Elastic|SVC)": "counts no iteration where ours counts a look",
    "weights_lasso|infinite_weights|weighted_ElasticNet|weights_group": "weights of features",
    "mtl_path|celer_path|group": "paths of several outputs, and groups",
    "bpr_test.*fit_non_csr_matrix": "warns of a format of matrices that we take as it is",
    "bpr_test.*rank_items": "items that a user likes already are left out, not put last",
    "bpr_test.*serialization_without_fit": "saving a model that has not learnt anything is an error",
    "bpr_test.*fit_empty_matrix": "a matrix without any like is an error",
    "TestWord2Vec.*test_((sg|cbow)_hs|train_hs|cosmul$|scoring$|similar_by$|prune_vocab$|vocab$|locking$)": _SOFTMAX,
    "TestWord2Vec.*test_(training(_cbow|_from_file)?|online_learning(_from_file)?|compute_training_loss)$": _SOFTMAX,
    "TestWord2Vec.*test_(build_vocab_from_freq|train_with_explicit_param)$": _SOFTMAX,
    "TestWord2Vec.*test_(cbow_fixedwindowsize|sg_fixedwindowsize_fromfile)$": _SOFTMAX,
    "TestWord2Vec.*test_(lambda_rule|rule|rule_with_min_count|persistence_with_constructor_rule)$": "rules for words",
    "TestWord2Vec.*test_(load_old_model|persistence_backwards_compatible)": _OLD,
    "TestWord2Vec.*test_persistence_.*_(with_vocab|with_standard_persistence)$": "files of words and counts only",
    "TestWord2Vec.*test_(build_vocab|train)_warning$": _TEXT,
    "TestWord2Vec.*test_max_final_vocab$": _PRIVATE,
    "TestWord2Vec.*test_reset_from$": "taking over the words of another model",
    "TestWord2Vec.*test_load_on_class_error$": "loading with an object's method, which is an error",
    "TestWord2Vec.*test_predict_output_word$": "prediction of a word from the words around it",
    "TestWord2Vec.*test_evaluate_word_analogies$": "lists of the questions answered, where ours counts them",
    "Test(Word2Vec|Lda).*test_large_mmap": "arrays that stay in files",
    "TestLda.*test_(dtype|random_state)_backward_compatibility$|TestLda.*compatibility_with_python": _OLD,
    "TestLda.*test_(sync_state|persistence|persistence_compressed)$": _PRIVATE,
    "TestLda.*test_persistence_ignore$": "files without some of the attributes",
    "TestLda.*test_passes$": "learning rates of variational inference",
    "TestLda.*test_get_document_topics$": "topics of the single words of a document",
    "TestLdaMulticore.*test_alpha_auto$": "learning the prior, which is an error",
}
