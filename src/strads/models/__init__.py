"""Estimators with the conventions of scikit-learn."""

from strads.models.corpora.corpus import Corpus
from strads.models.lasso import Lasso
from strads.models.latent_dirichlet_allocation import LatentDirichletAllocation
from strads.models.linear_svc import LinearSVC
from strads.models.logistic_regression import LogisticRegression
from strads.models.matrix_factorization import MatrixFactorization
from strads.models.regression.path import RegularizationPath, alpha_max, l1_min_c, lasso_path, logistic_path

__all__ = [
    "Corpus",
    "Lasso",
    "LatentDirichletAllocation",
    "LinearSVC",
    "LogisticRegression",
    "MatrixFactorization",
    "RegularizationPath",
    "alpha_max",
    "l1_min_c",
    "lasso_path",
    "logistic_path",
]
