"""Estimators with the conventions of scikit-learn."""

from strads.models.bayesian_personalized_ranking import BayesianPersonalizedRanking
from strads.models.corpora.corpus import Corpus
from strads.models.corpora.sentences import Sentences
from strads.models.cross_validation import ElasticNetCV, LassoCV, LogisticRegressionCV
from strads.models.knowledge_graphs.files import read_labels, read_triples
from strads.models.knowledge_graphs.ranking import LinkPrediction, RankingFigures
from strads.models.lasso import ElasticNet, Lasso
from strads.models.latent_dirichlet_allocation import LatentDirichletAllocation
from strads.models.linear_svc import LinearSVC
from strads.models.logistic_regression import LogisticRegression
from strads.models.matrix_factorization import MatrixFactorization
from strads.models.multi_task_lasso import MultiTaskElasticNet, MultiTaskLasso
from strads.models.multinomial_logistic_regression import MultinomialLogisticRegression
from strads.models.poisson_regressor import PoissonRegressor
from strads.models.ranking.metrics import RankingMetrics, evaluate_ranking, last_share, leave_one_out
from strads.models.regression.coordinate_descent import CoordinateDescent
from strads.models.regression.path import RegularizationPath, alpha_max, l1_min_c, lasso_path, logistic_path
from strads.models.regression.working_set import WorkingSet
from strads.models.transe import TransE
from strads.models.word2vec import Word2Vec
from strads.models.word_vectors import WordVectors

__all__ = [
    "BayesianPersonalizedRanking",
    "CoordinateDescent",
    "Corpus",
    "ElasticNet",
    "ElasticNetCV",
    "Lasso",
    "LassoCV",
    "LatentDirichletAllocation",
    "LinearSVC",
    "LinkPrediction",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MatrixFactorization",
    "MultiTaskElasticNet",
    "MultiTaskLasso",
    "MultinomialLogisticRegression",
    "PoissonRegressor",
    "RankingFigures",
    "RankingMetrics",
    "RegularizationPath",
    "Sentences",
    "TransE",
    "Word2Vec",
    "WordVectors",
    "WorkingSet",
    "alpha_max",
    "evaluate_ranking",
    "l1_min_c",
    "lasso_path",
    "last_share",
    "leave_one_out",
    "logistic_path",
    "read_labels",
    "read_triples",
]
