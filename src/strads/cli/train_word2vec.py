"""`strads train word2vec`: vectors of the words of a text file."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strads.cli.train_options import (
    DATA,
    MODEL,
    RUN,
    Common,
    not_negative,
    positive,
    share,
)

if TYPE_CHECKING:
    from strads.cli.word2vec_run import Word2VecRun


class Tokens(StrEnum):
    """How lines are split."""

    words = "words"
    whitespace = "whitespace"


def word2vec(
    *,
    data: Annotated[
        Path,
        typer.Option(help="Text, one sentence or document a line; gzip, bz2, zstd, lz4 too.", rich_help_panel=DATA),
    ],
    tokens: Annotated[
        Tokens,
        typer.Option(
            help="words: runs of letters, digits and underscores; whitespace: split at white space only.",
            rich_help_panel=DATA,
        ),
    ] = Tokens.words,
    lowercase: Annotated[bool, typer.Option(help="Convert to lower case.", rich_help_panel=DATA)] = True,
    min_count: Annotated[
        int, typer.Option(min=1, help="Leave out words that occur less often.", rich_help_panel=DATA)
    ] = 5,
    max_words: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Keep so many words, the most frequent; by default all.",
            show_default=False,
            rich_help_panel=DATA,
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="Pairs of words and people's judgement of their similarity (tab separated), to compare with.",
            show_default=False,
            rich_help_panel=DATA,
        ),
    ] = None,
    vector_size: Annotated[int, typer.Option(min=1, help="Dimensions of the vectors.", rich_help_panel=MODEL)] = 100,
    window: Annotated[
        int, typer.Option(min=1, max=255, help="Largest distance of two words of a pair.", rich_help_panel=MODEL)
    ] = 5,
    negative: Annotated[int, typer.Option(min=1, help="Negative samples of a pair.", rich_help_panel=MODEL)] = 5,
    cbow: Annotated[
        bool,
        typer.Option("--cbow", help="Continuous bag of words instead of skip-gram; one thread.", rich_help_panel=MODEL),
    ] = False,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the text.", rich_help_panel=MODEL)] = 5,
    alpha: Annotated[
        float, typer.Option(callback=positive, help="Learning rate at the start.", rich_help_panel=MODEL)
    ] = 0.025,
    min_alpha: Annotated[
        float, typer.Option(callback=not_negative, help="Learning rate at the end.", rich_help_panel=MODEL)
    ] = 0.0001,
    sample: Annotated[
        float,
        typer.Option(callback=share, help="Subsample words with a larger share of the text.", rich_help_panel=MODEL),
    ] = 1e-3,
    vectors: Annotated[
        Path | None,
        typer.Option(
            help="Write the vectors to this file, too, in the format of word2vec (binary if it ends in .bin).",
            show_default=False,
            rich_help_panel=RUN,
        ),
    ] = None,
    common: Common,
) -> "Word2VecRun":
    """Vectors of words, by skip-gram with negative sampling.

    Same seed, same vectors, on any number of threads and nodes.

    One review a line: [bold]strads train word2vec --data reviews.txt.gz --vectors vectors.bin --out run[/bold]

    On several machines: [bold]mpiexec -n 4 strads train word2vec …[/bold], with the same result.
    """
    from strads.cli.word2vec_run import Word2VecRun

    return Word2VecRun(
        data=data,
        common=common,
        tokens=tokens.value,
        lowercase=lowercase,
        pairs=pairs,
        vectors=vectors,
        parameters={
            "vector_size": vector_size,
            "window": window,
            "min_count": min_count,
            "sg": 0 if cbow else 1,
            "negative": negative,
            "sample": sample,
            "alpha": alpha,
            "min_alpha": min_alpha,
            "epochs": epochs,
            "max_final_vocab": max_words,
            "random_state": common.seed,
        },
    )
