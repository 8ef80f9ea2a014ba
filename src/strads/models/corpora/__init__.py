"""Documents as counts of words: from matrices, texts and files."""
