"""`strads train word2vec`: vectors of the words of a text file."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from strads.cli.train_options import Common, data_option, model_option, not_negative, positive, run_option, share

if TYPE_CHECKING:
    from strads.cli.word2vec_run import Word2VecRun


class Tokens(StrEnum):
    """How lines are split."""

    words = "words"
    whitespace = "whitespace"


def word2vec(
    *,
    data: Annotated[Path, data_option(help="Text, one sentence or document a line; gzip, bz2, zstd, lz4 too.")],
    tokens: Annotated[
        Tokens,
        data_option(help="words: runs of letters, digits and underscores; whitespace: split at white space only."),
    ] = Tokens.words,
    lowercase: Annotated[bool, data_option(help="Convert to lower case.")] = True,
    min_count: Annotated[int, data_option(min=1, help="Leave out words that occur less often.")] = 5,
    max_words: Annotated[
        int | None, data_option(min=1, help="Keep only this many words, the most frequent; by default all.")
    ] = None,
    pairs: Annotated[
        Path | None,
        data_option(help="Pairs of words and people's judgement of their similarity (tab separated), to compare with."),
    ] = None,
    vector_size: Annotated[int, model_option(min=1, help="Dimensions of the vectors.")] = 100,
    window: Annotated[int, model_option(min=1, max=255, help="Largest distance of two words of a pair.")] = 5,
    negative: Annotated[int, model_option(min=1, help="Negative samples of a pair.")] = 5,
    cbow: Annotated[
        bool, model_option("--cbow", help="Continuous bag of words instead of skip-gram; one thread.")
    ] = False,
    epochs: Annotated[int, model_option(min=1, help="Passes over the text.")] = 5,
    alpha: Annotated[float, model_option(callback=positive, help="Learning rate at the start.")] = 0.025,
    min_alpha: Annotated[float, model_option(callback=not_negative, help="Learning rate at the end.")] = 0.0001,
    sample: Annotated[
        float, model_option(callback=share, help="Subsample words with a larger share of the text.")
    ] = 1e-3,
    vectors: Annotated[
        Path | None,
        run_option(help="Write the vectors to this file, too, in the format of word2vec (binary if it ends in .bin)."),
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
