"""Documents from a file of texts or a bag of words, and which words are counted."""

import re
import warnings
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from strads.cli.train_options import data_option
from strads.errors import InputError
from strads.models.corpora.corpus import Corpus
from strads.models.corpora.documents import read_vocabulary
from strads.models.corpora.uci_bag_of_words import looks_like_uci

TEXT, UCI = "text, a document a line", "bag of words (UCI)"
_DEFAULTS: dict[str, Any] = {"min_df": 5, "max_df": 0.5, "max_features": None, "stop_words": "english"}
_PARAMETER = re.compile(r"\b(min_df|max_df|max_features|stop_words)\b")


def _frequency(value: str) -> float:
    """A number of documents if an integer, as `5`; a fraction of them with a decimal point, as `0.5`."""
    try:
        if "." not in value and "e" not in value.lower():
            number: float = int(value)
            is_valid = number >= 1
        else:
            number = float(value)
            is_valid = 0 <= number <= 1
    except ValueError:
        is_valid = False
    if not is_valid:
        raise typer.BadParameter(f"{value!r}: give a number of documents, such as 5, or a share of them, such as 0.5")
    return number


_frequency_option = partial(data_option, parser=_frequency, metavar="NUMBER|SHARE")


@dataclass(frozen=True, kw_only=True)
class WordOptions:
    """Which words of a text are counted, as `Corpus.from_text` has it; None if an option was not given."""

    min_df: Annotated[
        float | None, _frequency_option(help="Leave out words of the text that are in fewer documents; by default 5.")
    ] = None
    max_df: Annotated[
        float | None,
        _frequency_option(help="Leave out words that are in more documents; by default 0.5, half of them."),
    ] = None
    max_features: Annotated[
        int | None, data_option(min=1, help="Keep only this many words, the most frequent; by default all.")
    ] = None
    stop_words: Annotated[
        Literal["english", "none"] | None,
        data_option(help="Words to leave out; by default english, with --vocab none."),
    ] = None

    @property
    def given(self) -> dict[str, Any]:
        """The options given on the command line, with their values."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Documents:
    """A corpus and its origin."""

    corpus: Corpus
    kind: str  # the file format, for people
    words: dict[str, Any]  # the options by which the words were chosen
    notes: list[str]  # for the user, about how the file was read


def read_documents(path: Path, vocab: Path | None, options: WordOptions) -> Documents:
    """Read documents from a text file, one per line, or from a bag of words in UCI's format; compressed or not.

    Parameters
    ----------
    path : Path
        The file; its kind is recognised by its first lines.
    vocab : Path or None
        File of words, one per line: those of the bag of words by number, or those of the texts to count.
    options : WordOptions
        Options for texts without a vocabulary; the defaults suit a few hundred documents or more.

    Raises
    ------
    InputError
        For files that cannot be read, and for options that do not apply to them; names file and line.
    """
    if looks_like_uci(path):
        _refuse(options.given, f"{path}: is a bag of words, in which words are chosen already")
        return Documents(Corpus.from_uci(path, vocab), UCI, {}, [])
    if vocab is not None:
        given = options.given
        stop_words = given.pop("stop_words", "none")
        _refuse(given, f"{vocab}: the vocabulary says which words count")
        return _read_texts(path, {"stop_words": stop_words}, read_vocabulary(vocab))
    return _read_texts(path, _DEFAULTS | options.given)


def _refuse(given: dict[str, Any], reason: str) -> None:
    if given:
        raise InputError(f"{reason}: leave out {', '.join(map(_option, given))}")


def _read_texts(path: Path, words: dict[str, Any], vocabulary: list[str] | None = None) -> Documents:
    options = words | {"stop_words": None if words["stop_words"] == "none" else words["stop_words"]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            corpus = Corpus.from_file(path, vocabulary=vocabulary, **options)
        except InputError as error:
            raise InputError(_in_options(path, str(error))) from error
    notes = [str(each.message) for each in caught if issubclass(each.category, UserWarning)]
    return Documents(corpus, TEXT, words, notes)


def _in_options(path: Path, message: str) -> str:
    """A message of the reader, with the file's name and the command-line names of parameters."""
    renamed = _PARAMETER.sub(lambda found: _option(found[0]), message)
    return renamed if str(path) in renamed else f"{path}: {renamed}"


def _option(parameter: str) -> str:
    return "--" + parameter.replace("_", "-")
