"""Estimators with the conventions of scikit-learn."""

from strads.models.bayesian_personalized_ranking import BayesianPersonalizedRanking
from strads.models.corpora.corpus import Corpus
from strads.models.corpora.sentences import Sentences
from strads.models.lasso import Lasso
from strads.models.latent_dirichlet_allocation import LatentDirichletAllocation
from strads.models.linear_svc import LinearSVC
from strads.models.logistic_regression import LogisticRegression
from strads.models.matrix_factorization import MatrixFactorization
from strads.models.regression.path import RegularizationPath, alpha_max, l1_min_c, lasso_path, logistic_path
from strads.models.word2vec import Word2Vec
from strads.models.word_vectors import WordVectors

__all__ = [
    "BayesianPersonalizedRanking",
    "Corpus",
    "Lasso",
    "LatentDirichletAllocation",
    "LinearSVC",
    "LogisticRegression",
    "MatrixFactorization",
    "RegularizationPath",
    "Sentences",
    "Word2Vec",
    "WordVectors",
    "alpha_max",
    "l1_min_c",
    "lasso_path",
    "logistic_path",
]
