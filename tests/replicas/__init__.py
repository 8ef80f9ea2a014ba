"""Replicas of models that are fed the same log of batches: one runs through, one is killed again and again.

After every batch that both have seen they must agree bit by bit: `python tests/replicas`, or `make replicas`.
"""
