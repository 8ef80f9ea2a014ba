"""Word counts of documents, from matrices and word numbers: checked, and converted to one format."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from strads.errors import ArgumentError, InputError
from strads.models._sparse_input import refuse_corrupt
from strads.models._warnings import warn

LARGEST = int(np.iinfo(np.int32).max)
_ADVICE = "numbers, 0 or more"


class Counts(NamedTuple):
    """The words of document d are `words[offsets[d]:offsets[d + 1]]`, with the counts at the same positions.

    Word numbers increase within a document, so there are no duplicates; all counts are 1 or more. Words are numbered
    from 0 to `n_words` − 1; some may not occur.
    """

    offsets: NDArray[np.int64]
    words: NDArray[np.int32]
    counts: NDArray[np.int32]
    n_words: int


def counts_of_sparse(matrix: Any) -> Counts:
    """Counts of a SciPy sparse matrix or array, documents × words.

    Duplicates are summed, stored zeros dropped. The matrix is not modified; a canonical CSR matrix of int32 shares its
    memory with the result.

    Raises
    ------
    ArgumentError
        If it does not have two axes, or does not hold real numbers.
    InputError
        At the first negative, NaN or infinite entry, or one (or a sum) above 2³¹ − 1.

    Warns
    -----
    UserWarning
        If entries are fractional. Each is rounded to one of its neighbours at random, so that its mean is the entry;
        the same matrix is rounded in the same way every time.
    """
    _check_kind(matrix.dtype, matrix.ndim)
    _check_shape(*matrix.shape)
    refuse_corrupt(matrix)
    if matrix.format != "csr":
        matrix = matrix.tocoo()
        rows, columns = matrix.row, matrix.col
        values = _whole(matrix.data, lambda k: (rows[k], columns[k]))
        return counts_of_entries(rows, columns, values, matrix.shape)
    offsets, words, values = matrix.indptr, matrix.indices, matrix.data[: matrix.indptr[-1]]
    values = _whole(values, lambda k: (np.searchsorted(offsets, k, side="right") - 1, words[k]))
    words = words[: len(values)]
    if rises_within(words, offsets) and (len(values) == 0 or values.min() > 0):
        return _narrowed(offsets, words, values, matrix.shape[1])
    return _canonical(
        scipy.sparse.csr_array((values.astype(np.int64), words.copy(), offsets.copy()), shape=matrix.shape)
    )


def counts_of_dense(array: NDArray[Any]) -> Counts:
    """Counts of an ndarray of shape (documents, words); see `counts_of_sparse` for what is rejected."""
    if isinstance(array, np.ma.MaskedArray):
        raise ArgumentError("a masked array has missing counts: fill them first with array.filled(0)")
    if array.dtype == object and array.ndim == 2:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"counts are {_ADVICE}: argument must be a number ({error})") from None
    _check_kind(array.dtype, array.ndim)
    _check_shape(*array.shape)
    whole = _whole(array.reshape(-1), lambda k: divmod(k, array.shape[1])).reshape(array.shape)
    rows, columns = np.nonzero(whole)
    return counts_of_entries(rows, columns, whole[rows, columns], array.shape)


def counts_of_word_numbers(
    numbers: NDArray[Any], offsets: NDArray[np.int64], n_words: int | None
) -> tuple[Counts, int]:
    """Counts of documents that are given as the word numbers of their tokens.

    Parameters
    ----------
    numbers : integers of shape (tokens,)
        Word numbers, from 0.
    offsets : int64 of shape (documents + 1,)
        Start of each document.
    n_words : int or None
        Numbers from here on are unknown words, which are left out. None: one more than the largest.

    Returns
    -------
    The counts, and the number of unknown tokens.

    Raises
    ------
    ArgumentError
        If the numbers are not integers.
    InputError
        At the first negative number, or one above 2³¹ − 2.
    """
    if numbers.dtype.kind not in "iu" and len(numbers):
        raise ArgumentError(f"words of documents are integers, numbers from 0, not {numbers.dtype}")
    wrong = (numbers < 0) | (numbers >= LARGEST) if n_words is None else numbers < 0
    if wrong.any():
        k = int(np.argmax(wrong))
        document = int(np.searchsorted(offsets, k, side="right")) - 1
        raise InputError(f"document {document}: word number {numbers[k]} is outside 0 … {LARGEST - 1}")
    unknown = 0
    if n_words is None:
        n_words = int(numbers.max()) + 1 if len(numbers) else 0
    else:
        known = numbers < n_words
        unknown = len(known) - int(known.sum())
        if unknown:
            numbers, offsets = numbers[known], np.concatenate([[0], np.cumsum(known)])[offsets]
    ones = np.ones(len(numbers), np.int64)
    shape = (len(offsets) - 1, n_words)
    matrix = scipy.sparse.csr_array((ones, numbers.astype(np.int32), offsets.copy()), shape=shape)
    return _canonical(matrix), unknown


def counts_of_entries(
    rows: NDArray[np.integer], columns: NDArray[np.integer], values: NDArray[Any], shape: tuple[int, int]
) -> Counts:
    """Counts of checked entries in any order; duplicates are summed, zeros dropped."""
    after, same = rows[1:] > rows[:-1], rows[1:] == rows[:-1]
    ordered = bool((after | (same & (columns[1:] > columns[:-1]))).all())
    if ordered and (len(values) == 0 or values.min() > 0):
        # In the rows' own dtype, so that the search does not convert them all.
        bounds = np.searchsorted(rows, np.arange(shape[0], dtype=rows.dtype)) if shape[0] else np.empty(0)
        return _narrowed(np.append(bounds, len(rows)), columns, values, shape[1])
    # Sums of narrow integers would wrap around.
    return _canonical(scipy.sparse.coo_array((values.astype(np.int64), (rows, columns)), shape=shape).tocsr())


def rises_within(words: NDArray[np.integer], offsets: NDArray[np.integer]) -> bool:
    """Whether the words of each document are in increasing order."""
    rises = np.empty(len(words) + 1, bool)
    np.greater(words[1:], words[:-1], out=rises[1:-1])
    rises[offsets] = True
    return bool(rises.all())


def tokens_of_documents(counts: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of the counts of each document, shape (documents,)."""
    tokens = np.zeros(len(offsets) - 1, np.int64)
    filled = offsets[1:] > offsets[:-1]
    tokens[filled] = np.add.reduceat(counts, offsets[:-1][filled], dtype=np.int64)
    return tokens


def _canonical(matrix: Any) -> Counts:
    """Counts of a CSR matrix of int64 that is not shared."""
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if len(matrix.data) and matrix.data.max() > LARGEST:
        k = int(matrix.data.argmax())
        row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
        raise InputError(
            f"row {row}, column {matrix.indices[k]} of the counts is {matrix.data[k]}: the largest count is {LARGEST}"
        )
    return _narrowed(matrix.indptr, matrix.indices, matrix.data, matrix.shape[1])


def _narrowed(offsets: NDArray[Any], words: NDArray[Any], counts: NDArray[Any], n_words: int) -> Counts:
    return Counts(
        offsets.astype(np.int64, copy=False),
        words.astype(np.int32, copy=False),
        counts.astype(np.int32, copy=False),
        int(n_words),
    )


def _check_kind(dtype: np.dtype, axes: int) -> None:
    if dtype.kind == "c":
        raise ArgumentError(f"Complex data not supported: counts are {_ADVICE}, not {dtype}")
    if axes != 2 or dtype.kind not in "biuf":
        reshape = "; Reshape your data: one row for each document" if axes == 1 else ""
        raise ArgumentError(f"counts are numbers in two axes, documents × words, not {axes}-D {dtype}{reshape}")


def _check_shape(n_documents: int, n_words: int) -> None:
    for what, number in (("documents", n_documents), ("words", n_words)):
        if number > LARGEST:
            raise InputError(f"the counts have {number} {what}; {LARGEST} are possible")


def _whole(values: NDArray[Any], place: Callable[[int], tuple[Any, Any]]) -> NDArray[Any]:
    """Return values as whole numbers, themselves if they are; `place` gives the row and column of a value.

    Raises
    ------
    InputError
        If one is not a count.
    """
    if values.dtype.kind == "b" or len(values) == 0:
        return values
    if values.dtype == np.float16:  # in which the largest count is infinite
        values = values.astype(np.float32)
    wrong = ~((values >= 0) & (values <= LARGEST))  # also true for NaN
    if values.dtype.kind == "f":
        wrong |= values >= LARGEST + 1.0  # the limit, rounded up to float32
    if wrong.any():
        k = int(np.argmax(wrong))
        row, column = place(k)
        shown = "NaN" if np.isnan(values[k]) else values[k]
        limit = f"; the largest is {LARGEST}" if values[k] > LARGEST else ""
        what = "Negative values in data: " if values[k] < 0 else ""
        raise InputError(f"{what}row {row}, column {column} of the counts is {shown}: counts are {_ADVICE}{limit}")
    return _rounded(values, place) if values.dtype.kind == "f" else values


def _rounded(values: NDArray[Any], place: Callable[[int], tuple[Any, Any]]) -> NDArray[Any]:
    """Round fractional values at random to a neighbour, with a probability that keeps the mean."""
    whole = np.floor(values)
    share = values - whole
    fractional = np.flatnonzero(share)
    if len(fractional) == 0:
        return values
    row, column = place(int(fractional[0]))
    warn(
        f"{len(fractional)} fractional counts, such as {values[fractional[0]]:g} in row {row}, column {column}: "
        "each is rounded at random to a neighbouring whole number; multiply small ones first, or count words"
    )
    whole[fractional] += np.random.default_rng(0).random(len(fractional)) < share[fractional]
    return np.minimum(whole, LARGEST)
