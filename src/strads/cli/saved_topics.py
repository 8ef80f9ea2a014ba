"""Documents in a file as a saved model of topics needs them, and how well it explains them."""

from pathlib import Path

import numpy as np

from strads.errors import InputError
from strads.models import Corpus, LatentDirichletAllocation
from strads.models.corpora.uci_bag_of_words import looks_like_uci


def read_known_documents(model: LatentDirichletAllocation, data: Path, vocab: Path | None) -> Corpus:
    """Read documents, one per line, or a bag of words in UCI's format, whose words `vocab` names.

    Raises
    ------
    InputError
        For a file that cannot be read, and for texts if the model has no vocabulary.
    """
    if looks_like_uci(data):
        return Corpus.from_uci(data, vocab)
    if model.vocabulary_ is None:
        raise InputError(f"{data}: the model knows its words by number only: give a bag of words in UCI's format")
    return Corpus.from_file(data, vocabulary=list(model.vocabulary_))


def quality_of_topics(model: LatentDirichletAllocation, documents: Corpus, words: int) -> dict[str, float]:
    """Return the perplexity of documents, and the mean coherence of topics by that many words of each.

    Topics of fewer than two words have no coherence; their number is returned if there are any.
    """
    figures = {"perplexity": model.perplexity(documents)}
    coherence = model.coherence(documents, words)
    unknown = np.isnan(coherence)
    if not unknown.all():
        figures["coherence"] = float(coherence[~unknown].mean())
    if unknown.any():
        figures["topics_without_coherence"] = int(unknown.sum())
    return figures
