"""Estimators with the conventions of scikit-learn."""

from strads.models.matrix_factorization import MatrixFactorization

__all__ = ["MatrixFactorization"]
