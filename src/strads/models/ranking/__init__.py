"""Bayesian personalized ranking: likes, the program that trains on them, and recommendations."""
