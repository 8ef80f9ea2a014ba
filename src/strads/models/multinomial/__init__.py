"""Multinomial logistic regression: evaluation over blocks of rows, preconditioned L-BFGS, and sweeps over classes."""
