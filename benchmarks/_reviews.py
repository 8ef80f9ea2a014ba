"""The IMDB reviews: 50,000 documents, 36,258 terms, 5.17 million tokens."""

from pathlib import Path

from strads.models import Corpus

REVIEWS = Path(__file__).resolve().parents[2] / "shared" / "data" / "imdb" / "reviews.tsv.gz"


def imdb_corpus(path: Path = REVIEWS) -> Corpus:
    """Count the words of the labelled IMDB reviews (Maas et al. 2011).

    Words are two or more letters a to z, in five or more reviews, no English stop words: exactly 36,258 terms and
    5,168,706 tokens. The rating at the start of each line is a number, so no word.
    """
    return Corpus.from_file(path, min_df=5, stop_words="english", token_pattern=r"\b[a-z]{2,}\b")
