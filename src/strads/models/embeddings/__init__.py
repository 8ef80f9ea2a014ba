"""Word embeddings: the choice of words, their blocks, training programs, and what the vectors are used for."""
