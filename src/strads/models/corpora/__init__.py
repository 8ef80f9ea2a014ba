"""Documents as word counts: from matrices, texts and files."""
