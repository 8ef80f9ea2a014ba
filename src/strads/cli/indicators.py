"""Columns of categories in delimited text, each read as one feature per category: 1 where it occurs, else 0."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse
from numpy.typing import NDArray

Feature = tuple[str, str | None]  # a column, and one of its categories unless it has numbers

_DENSE = 0.5  # share of stored entries from which on X is an array


def name_of(feature: Feature) -> str:
    """Return the name of a feature, such as "age", or "color=red"."""
    column, category = feature
    return column if category is None else f"{column}={category}"


def feature_of(name: str, header: Sequence[str]) -> Feature | None:
    """Return the feature that a name stands for in a file with these columns; None if there is none."""
    if name in header:
        return name, None
    cuts = (place for place, letter in enumerate(name) if letter == "=")
    return next(((name[:cut], name[cut + 1 :]) for cut in cuts if name[:cut] in header), None)


def features_of(table: pa.Table, columns: Sequence[str], categorical: Sequence[str]) -> list[Feature]:
    """Return the features of a file, in the order of its columns; categories are sorted."""
    found: list[Feature] = []
    for column in columns:
        if column in categorical:
            found += [(column, category) for category in sorted(pc.unique(table.column(column)).to_pylist())]
        else:
            found.append((column, None))
    return found


def matrix_of(table: pa.Table, features: Sequence[Feature]) -> tuple[NDArray[np.float64] | scipy.sparse.csc_array, str]:
    """Return the values of features, as an array in Fortran order or in CSC form, and a note on unknown categories.

    Parameters
    ----------
    table : pyarrow.Table
        Columns of float64, and of strings where features are categories.
    features : sequence of Feature

    Returns
    -------
    X : ndarray or csc_array of shape (table.num_rows, len(features))
    note : str
        What has been read as 0 because no feature stands for it; empty if nothing.
    """
    places: dict[str, dict[str, int]] = {}
    numeric: dict[str, int] = {}
    for place, (column, category) in enumerate(features):
        if category is None:
            numeric[column] = place
        else:
            places.setdefault(column, {})[category] = place
    shape = table.num_rows, len(features)
    found, note = {}, ""
    for column, place_of in places.items():
        found[column], unknown = _places(table.column(column), place_of)
        if unknown:
            note = note or f"column {column!r}: {unknown[0]!r} is not in the training data"
    if len(numeric) + len(places) >= _DENSE * len(features):
        X = np.zeros(shape, order="F")
        for column, place in numeric.items():
            X[:, place] = table.column(column).to_numpy()
        for each in found.values():
            known = np.flatnonzero(each >= 0)
            X[known, each[known]] = 1.0
        return X, note
    return _sparse(table, numeric, found, shape), note


def _places(column: pa.ChunkedArray, place_of: Mapping[str, int]) -> tuple[NDArray[np.int64], list[str]]:
    """Return the feature of each row, -1 if there is none, and the categories without one."""
    encoded = column.combine_chunks().dictionary_encode()
    categories = encoded.dictionary.to_pylist()
    feature = np.array([place_of.get(category, -1) for category in categories], np.int64)
    unknown = [category for category in categories if category not in place_of]
    return feature[encoded.indices.to_numpy()], unknown


def _sparse(
    table: pa.Table, numeric: Mapping[str, int], found: Mapping[str, NDArray[np.int64]], shape: tuple[int, int]
) -> scipy.sparse.csc_array:
    everything = np.arange(shape[0])
    rows, columns, values = [], [], []
    for column, place in numeric.items():
        rows.append(everything)
        columns.append(np.full(shape[0], place))
        values.append(table.column(column).to_numpy())
    for each in found.values():
        known = np.flatnonzero(each >= 0)
        rows.append(known)
        columns.append(each[known])
        values.append(np.ones(len(known)))
    places = np.concatenate(rows), np.concatenate(columns)
    return scipy.sparse.csc_array((np.concatenate(values), places), shape=shape)
