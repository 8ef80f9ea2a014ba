"""Compiler passes that rewrite a body before Numba compiles it."""
