"""`strads train lda`: topics of the documents in a file."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strads.cli.train_options import Common, data_option, model_option, positive, share

if TYPE_CHECKING:
    from strads.cli.lda_run import LdaRun


class StopWords(StrEnum):
    """Lists of stop words."""

    english = "english"
    none = "none"


class LearnPriors(StrEnum):
    """Which priors are fitted to the counts."""

    no = "no"
    symmetric = "symmetric"
    asymmetric = "asymmetric"


class Sampler(StrEnum):
    """How topics are drawn; all are exact."""

    auto = "auto"
    sparse = "sparse"
    dense = "dense"


def _frequency(value: str) -> float:
    """A number of documents if an integer, as `5`; a fraction of them with a decimal point, as `0.5`."""
    try:
        return _documents(value)
    except ValueError as error:
        raise typer.BadParameter(
            f"{value!r}: give a number of documents, such as 5, or a share of them, such as 0.5"
        ) from error


def _documents(value: str) -> float:
    if "." not in value and "e" not in value.lower():
        number = int(value)
        if number < 1:
            raise ValueError
        return number
    part = float(value)
    if not 0 <= part <= 1:
        raise ValueError
    return part


def lda(
    *,
    data: Annotated[Path, data_option(help="Text, one document a line, or UCI's bag of words (docword); gzip too.")],
    vocab: Annotated[
        Path | None, data_option(help="Words, one a line: those of the bag of words, or those of the text that count.")
    ] = None,
    min_df: Annotated[
        float | None,
        data_option(
            parser=_frequency,
            metavar="NUMBER|SHARE",
            help="Leave out words of the text that are in fewer documents; by default 5.",
        ),
    ] = None,
    max_df: Annotated[
        float | None,
        data_option(
            parser=_frequency,
            metavar="NUMBER|SHARE",
            help="Leave out words that are in more documents; by default 0.5, half of them.",
        ),
    ] = None,
    max_features: Annotated[
        int | None, data_option(min=1, help="Keep only this many words, the most frequent; by default all.")
    ] = None,
    stop_words: Annotated[
        StopWords | None, data_option(help="Words to leave out; by default english, with --vocab none.")
    ] = None,
    holdout: Annotated[
        float, data_option(callback=share, help="Share of the documents, chosen at random, to measure on.")
    ] = 0.1,
    topics: Annotated[int, model_option(min=1, help="How many to find.")] = 100,
    iterations: Annotated[int, model_option(min=1, help="Each draws the topic of every token once.")] = 100,
    alpha: Annotated[
        float | None, model_option(callback=positive, help="Prior of a document's topics; by default 1 / topics.")
    ] = None,
    beta: Annotated[
        float | None, model_option(callback=positive, help="Prior of a topic's words; by default 1 / topics.")
    ] = None,
    learn_priors: Annotated[
        LearnPriors,
        model_option(help="Keep α and β, or begin with them and fit them; α as one number, or one a topic."),
    ] = LearnPriors.asymmetric,
    sampler: Annotated[
        Sampler, model_option(help="How topics are drawn; by default whichever is faster for that number of topics.")
    ] = Sampler.auto,
    evaluate_every: Annotated[int, model_option(min=0, help="Iterations between two log-likelihoods; 0: none.")] = 1,
    common: Common,
) -> "LdaRun":
    """Topics of documents, by collapsed Gibbs sampling of latent Dirichlet allocation.

    The words of texts are counted in lower case; topics.txt then names each topic's most frequent ones.

    One review a line: [bold]strads train lda --data reviews.txt.gz --topics 200 --out run[/bold]

    On several machines: [bold]mpiexec -n 4 strads train lda …[/bold], with the same result.
    """
    from strads.cli.documents_file import WordOptions
    from strads.cli.lda_run import LdaRun

    return LdaRun(
        data=data,
        common=common,
        vocab=vocab,
        words=WordOptions(min_df, max_df, max_features, None if stop_words is None else stop_words.value),
        holdout=holdout,
        parameters={
            "n_components": topics,
            "max_iter": iterations,
            "doc_topic_prior": alpha,
            "topic_word_prior": beta,
            "learn_priors": learn_priors.value,
            "sampler": sampler.value,
            "evaluate_every": evaluate_every,
            "random_state": common.seed,
        },
    )
