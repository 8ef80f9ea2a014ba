"""`strads topics`: the words of a saved model's topics, and the topics of documents."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from strads.cli.saved_model import TOPICS, load_model
from strads.cli.saved_topics import read_known_documents
from strads.cli.table_output import Output
from strads.cli.use import CountOption, ModelArgument, VocabularyOption
from strads.models import LatentDirichletAllocation


def topics(
    *,
    model: ModelArgument,
    data: Annotated[
        Path | None, typer.Option(help="Documents, one per line, or a bag of words (UCI); by default none.")
    ] = None,
    vocab: VocabularyOption = None,
    count: CountOption = 10,
    output: Output,
) -> None:
    """Write the words of topics, or the topics of documents, with a model of [bold]strads train lda[/bold].

    Without documents the columns are topic, rank, word and weight, the probability of the word in the topic. With
    documents they are document, from 1, and one for each topic, its share.
    """
    loaded = load_model(model, TOPICS)
    if data is None:
        output.write(_words(loaded, count), "words of topics")
    else:
        output.write(_mixtures(loaded, data, vocab), "documents")


def _words(model: LatentDirichletAllocation, count: int) -> dict[str, Any]:
    """Return the best words of each topic with φ = (n_wk + β) / (n_k + Wβ)."""
    words = model.top_words(count)
    vocabulary = model.vocabulary_
    names = map(str, range(model.n_features_in_)) if vocabulary is None else vocabulary
    number_of = {word: number for number, word in enumerate(names)}
    numbers = np.array([number_of[word] for of_topic in words for word in of_topic])
    lengths = [len(of_topic) for of_topic in words]
    topic = np.repeat(np.arange(len(words)), lengths)
    counts = model.topic_word_counts_.tocsr()
    tokens, prior = np.asarray(counts.sum(0)).ravel(), float(model.topic_word_prior_[0])
    found = np.asarray(counts[numbers, topic]).ravel()
    return {
        "topic": topic,
        "rank": np.concatenate([np.arange(1, length + 1) for length in lengths]),
        "word": [word for of_topic in words for word in of_topic],
        "weight": (found + prior) / (tokens[topic] + prior * counts.shape[0]),
    }


def _mixtures(model: LatentDirichletAllocation, data: Path, vocab: Path | None) -> dict[str, Any]:
    """Return the share of each topic in each document."""
    shares = model.transform(read_known_documents(model, data, vocab))
    columns = {f"topic_{topic}": shares[:, topic] for topic in range(shares.shape[1])}
    return {"document": np.arange(1, len(shares) + 1), **columns}
