"""Estimators with the conventions of scikit-learn."""

from strads.models.corpora.corpus import Corpus
from strads.models.latent_dirichlet_allocation import LatentDirichletAllocation
from strads.models.matrix_factorization import MatrixFactorization

__all__ = ["Corpus", "LatentDirichletAllocation", "MatrixFactorization"]
