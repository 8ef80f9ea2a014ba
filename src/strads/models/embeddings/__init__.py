"""Word embeddings: the choice of words, their blocks, training programs, and uses of the vectors."""
