"""Topic models on the Static Engine: the grid of documents and words, the program, and results from its counts."""
