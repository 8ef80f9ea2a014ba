"""Converts users' input to linear models for the solvers: checked, without copies if possible, with named errors."""

import numbers
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from strads import cluster
from strads.cluster import ThreadTeam
from strads.errors import ArgumentError, InputError, StradsError
from strads.models._parameters import is_number
from strads.models._sparse_input import refuse_corrupt
from strads.models.arrays import Array
from strads.models.regression.column_shards import ColumnShards
from strads.models.regression.design import Design
from strads.models.regression.labels import as_labels
from strads.models.regression.local_design import DenseDesign, LocalDesign, SparseDesign

_DTYPES = [np.float64, np.float32]  # that are kept; others become the first
_ROWS_AT_ONCE = 4096  # so that temporary arrays stay in the cache
_LARGEST = 1e140  # sums of squares of larger numbers may overflow
_HEAVIEST = 1e100  # sum of weights whose squares, times those of X, still leave room


def as_features(estimator: Any, X: Any) -> Any:
    """Return X for fitting, as an ndarray in C or Fortran order or in CSC form, float32 or float64, without a copy.

    Integers and other types are converted to float64, CSR and other sparse formats to CSC, and duplicate entries of CSC
    are summed; these are copies. Sets `n_features_in_` of the estimator, and `feature_names_in_` from a data frame. It
    does not check that the numbers are finite, as this would take a pass over X: `refuse_not_finite` does so if needed.

    Raises
    ------
    ArgumentError, InputError
        If X is no matrix of numbers, or has no rows or no columns.
    """
    refuse_corrupt(X)
    with _by_name():
        X = validate_data(estimator, X, accept_sparse="csc", dtype=_DTYPES, ensure_all_finite=False)
    if scipy.sparse.issparse(X):
        return _canonical(X)
    X = np.asarray(X)
    return X if X.flags.c_contiguous or X.flags.f_contiguous else np.asfortranarray(X)


def as_rows(estimator: Any, X: Any) -> Any:
    """Return X for fitting, as an ndarray in C order or in CSR form, float32 or float64, without a copy.

    Sets the same attributes of the estimator as `as_features`.

    Raises
    ------
    ArgumentError, InputError
        If X is no matrix of finite numbers, or has no rows or no columns.
    """
    refuse_corrupt(X)
    X = _validated(estimator, X, accept_sparse="csr", order="C")
    return _canonical(X) if scipy.sparse.issparse(X) else X


def _canonical(X: Any) -> Any:
    """Return CSC or CSR with sorted, unique indices; a copy unless they already are."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def as_features_to_predict(estimator: Any, X: Any) -> Any:
    """Return X for prediction, as an ndarray, CSC or CSR, with the columns that the estimator was fitted to.

    Raises
    ------
    ArgumentError, InputError
        If X is not a matrix of finite numbers with as many columns.
    """
    refuse_corrupt(X)
    return _validated(estimator, X, reset=False, accept_sparse=("csr", "csc"))


def _validated(estimator: Any, X: Any, **options: Any) -> Any:
    """Return what scikit-learn's check does; of what is not finite, the error names the row and the column."""
    with _by_name():
        try:
            return validate_data(estimator, X, dtype=_DTYPES, **options)
        except ValueError as error:
            if "NaN" in str(error) or "infinity" in str(error):
                anything = validate_data(estimator, X, ensure_all_finite=False, dtype=_DTYPES, **options)
                refuse_not_finite(estimator, anything)
            raise


def as_design(X: Any, team: ThreadTeam | None = None) -> Design:
    """Return the solvers' view of X, with its columns partitioned over several nodes, else read by `team`."""
    design = as_local_design(X, team)
    return design if cluster.current().is_local else ColumnShards(design)


def as_local_design(X: Any, team: ThreadTeam | None = None) -> LocalDesign:
    """Return the same view in this process only: what a single pass needs."""
    return SparseDesign(X, team) if scipy.sparse.issparse(X) else DenseDesign(X, team)


def as_targets(y: Any, samples: int) -> Array:
    """Return finite targets of shape (samples,).

    Raises
    ------
    ArgumentError, InputError
        If y is missing, of another length, non-numeric or not finite; names the first such row.
    """
    y = _as_column(y, samples)
    with _by_name():
        if np.iscomplexobj(y):
            raise ArgumentError("y: complex data not supported: give real numbers")
        y = np.ascontiguousarray(y, dtype=np.float64)
    _refuse_first(~np.isfinite(y), y, "y", "contains NaN or infinity: remove the row or fill in a number")
    return y


def as_several_targets(y: Any, samples: int) -> Array:
    """Return finite targets of shape (samples, outputs).

    Raises
    ------
    ArgumentError, InputError
        If y is of another shape, non-numeric or not finite; names the first such row.
    """
    _refuse_missing(y)
    with _by_name():
        found = check_array(y, ensure_2d=False, allow_nd=True, dtype=np.float64, ensure_all_finite=False)
    if found.ndim != 2:
        raise ArgumentError(f"y has the shape {found.shape}: give a column per output; for one there is ElasticNet")
    if len(found) != samples:
        raise InputError(f"X has {samples} samples, but y has {len(found)}")
    wrong = ~np.isfinite(found).all(1)
    _refuse_first(wrong, found, "y", "contains NaN or infinity: remove the row or fill in a number")
    return found


def as_classes(y: Any, samples: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the sorted labels, and the index of each sample's label among them.

    Raises
    ------
    ArgumentError, InputError
        If y is missing, of another length, not labels, or all the same.
    """
    _refuse_missing(y)
    with _by_name():
        y = as_labels(y)
    y = _as_column(y, samples)
    with _by_name():
        check_classification_targets(y)
        classes, places = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"y has only one class, {classes.tolist()[0]!r}: give samples of two classes")
    if classes.dtype == object and (unfit := [label for label in classes if label.endswith("\0")]):
        raise InputError(f"y: the label {unfit[0]!r} ends with a NUL character, which no file of a model can hold")
    return classes, places


def count_classes(y: Any) -> int:
    """Return the number of distinct labels; 0 of what `as_classes` refuses, with its reasons."""
    with suppress(TypeError, ValueError, StradsError):
        return len(np.unique(column_or_1d(y)))
    return 0


def as_two_classes(y: Any, samples: int) -> tuple[NDArray[Any], Array]:
    """Return the two sorted labels, and y as −1 for the first and 1 for the second.

    Raises
    ------
    ArgumentError, InputError
        If y is missing, of another length, or does not have exactly two labels.
    """
    classes, places = as_classes(y, samples)
    if len(classes) > 2:
        with _by_name():
            kind = type_of_target(as_labels(y), input_name="y", raise_unknown=True)
        raise InputError(
            f"Only binary classification is supported. The type of the target is {kind}: y has {len(classes)} classes; "
            "wrap the estimator in sklearn.multiclass.OneVsRestClassifier"
        )
    return classes, np.where(places == 1, 1.0, -1.0)


def as_class_factors(wanted: Any, classes: NDArray[Any], totals: Array, *, may_be_empty: bool = False) -> Array:
    """Return the weight factor of each class's samples, shape (n_classes,).

    Parameters
    ----------
    wanted : dict of label → factor, "balanced" or None
        "balanced": all classes get equal total weight; a class without a factor has 1.
    classes, totals
        The labels, and the sum of the sample weights of each class.
    may_be_empty
        Whether all weights of some classes may be 0; these do not count among all classes then.

    Raises
    ------
    ArgumentError, InputError
        If a label does not exist, a factor is not positive, or all weights of a class are 0, or of all but one.
    """
    known = classes.tolist()
    is_empty = totals == 0.0
    for label, total in zip(known, totals.tolist(), strict=True):
        if total == 0.0 and not (may_be_empty and (~is_empty).sum() > 1):
            raise InputError(f"sample_weight: all samples of class {label!r} have weight 0: remove the class")
    if wanted is None:
        return np.ones(len(known))
    if isinstance(wanted, Mapping):
        if classes.dtype.kind in "mM":
            raise ArgumentError("class_weight with dates as labels cannot be saved: pass the factors as sample_weight")
        for label, factor in wanted.items():
            if label not in known:
                raise InputError(
                    f"class_weight: there is no class {label!r} in y, but {' and '.join(map(repr, known))}"
                )
            if not is_number(factor) or factor <= 0:
                raise ArgumentError(f"class_weight of {label!r} is {factor!r}: give a positive number")
        return np.array([float(wanted.get(label, 1.0)) for label in known])
    if isinstance(wanted, str) and wanted == "balanced":
        return np.asarray(totals.sum() / ((~is_empty).sum() * np.where(is_empty, 1.0, totals)))
    raise ArgumentError(f'class_weight={wanted!r}: give a dict of label → weight, "balanced" or None')


def as_sample_weights(weights: ArrayLike | None, samples: int) -> Array:
    """Return weights of shape (samples,), ones for None; a number is used for all samples.

    Raises
    ------
    ArgumentError, InputError
        If their number is wrong, if one is negative or not finite, or if all are 0.
    """
    if weights is None:
        return np.ones(samples)
    if isinstance(weights, numbers.Real):
        weights = np.full(samples, float(weights))
    with _by_name():
        array = np.array(weights, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"sample_weight has {array.ndim} dimensions: Sample weights must be 1D array or scalar")
    if len(array) != samples:
        raise InputError(f"sample_weight has {len(array)} weights, but X has {samples} rows: give one a row")
    _refuse_first(
        ~(np.isfinite(array) & (array >= 0.0)), array, "sample_weight", "is negative or not finite: give 0 or more"
    )
    total = float(array.sum())
    if total == 0.0:
        raise InputError("sample_weight: all weights are zero, nothing is left to fit to: give positive ones")
    if not 1.0 / _HEAVIEST <= total <= _HEAVIEST:
        raise InputError(
            f"sample_weight: the weights sum to {total:g}, too {'much' if total > 1.0 else 'little'} to compute with: "
            "multiply them by a factor"
        )
    return array


def refuse_not_finite(estimator: Any, X: Any) -> None:
    """Raise an error for the first entry of X that is NaN or infinite, or whose square is; called after a failure.

    Raises
    ------
    InputError
        If there is such an entry.
    """
    found = first_not_finite(X)
    if found is not None:
        row, column, value = found
        what = "NaN" if np.isnan(value) else "infinity"
        raise InputError(
            f"X contains {what} in row {row}, {_name_of(estimator, column)}: remove the row or the column, or fill in "
            "a number, for example with sklearn.impute.SimpleImputer"
        )
    row, column, value = _largest(X)
    if abs(value) > _LARGEST:
        raise InputError(
            f"X is too large to compute with: {value:g} in row {row}, {_name_of(estimator, column)}: scale the columns"
        )


def first_not_finite(X: Any) -> tuple[int, int, float] | None:
    """Return row, column and value of the first entry of an array, or CSC or CSR matrix, that is NaN or infinite."""
    if scipy.sparse.issparse(X):
        places = np.flatnonzero(~np.isfinite(X.data))
        if not len(places):
            return None
        return min((_entry(X, int(place)) for place in places), key=lambda entry: entry[:2])
    for start in range(0, len(X), _ROWS_AT_ONCE):
        part = X[start : start + _ROWS_AT_ONCE]
        bad = np.argwhere(~np.isfinite(part))
        if len(bad):
            row, column = (int(each) for each in bad[0])
            return start + row, column, float(part[row, column])
    return None


def _largest(X: Any) -> tuple[int, int, float]:
    if scipy.sparse.issparse(X):
        return _entry(X, int(np.argmax(np.abs(X.data)))) if X.nnz else (0, 0, 0.0)
    row, column = (int(place) for place in np.unravel_index(np.argmax(np.abs(X)), X.shape))
    return row, column, float(X[row, column])


def _entry(X: Any, place: int) -> tuple[int, int, float]:
    """Row, column and value of a stored entry of a CSC or CSR matrix."""
    outer, inner = int(np.searchsorted(X.indptr, place, side="right")) - 1, int(X.indices[place])
    row, column = (outer, inner) if X.format == "csr" else (inner, outer)
    return row, column, float(X.data[place])


def _name_of(estimator: Any, column: int) -> str:
    names = getattr(estimator, "feature_names_in_", None)
    return f"column {column}" if names is None else f"column {column} ({names[column]!r})"


def _refuse_missing(y: Any) -> None:
    if y is None:
        raise InputError("requires y to be passed, but the target y is None: call fit(X, y)")
    if scipy.sparse.issparse(y):
        raise ArgumentError("y is sparse: pass y.toarray(), for one output y.toarray().ravel()")


def _as_column(y: Any, samples: int) -> NDArray[Any]:
    _refuse_missing(y)
    with _by_name():
        y = column_or_1d(y, warn=True)
    if len(y) != samples:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: X has {samples} rows, but y has {len(y)} "
            "entries"
        )
    return y


def _refuse_first(bad: NDArray[np.bool_], values: NDArray[Any], name: str, problem: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{name}: entry {row} is {values[row]}: {name} {problem}")


@contextmanager
def _by_name() -> Iterator[None]:
    """Convert errors of scikit-learn and NumPy to our error types."""
    try:
        yield
    except StradsError:
        raise
    except TypeError as error:
        raise ArgumentError(str(error)) from error
    except ValueError as error:
        raise InputError(str(error)) from error
