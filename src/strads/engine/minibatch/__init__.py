"""Execution of minibatches on replicas of the parameters."""
