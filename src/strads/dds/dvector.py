"""The table of rows that loops read and write."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from strads.checkpoints import Load, Save, Tree, observe
from strads.cluster import Cluster
from strads.dds._arrow import storage_from_arrow
from strads.dds._display import SHOWN_ROWS, display, summary
from strads.dds._dtypes import resolve_dtype
from strads.dds._indexing import RowIndexError
from strads.dds._memory import copied, zeros
from strads.dds._placement import Content
from strads.dds._selection import (
    NeedsAllRows,
    assign,
    assign_remote,
    checked_index,
    read,
    read_remote,
    readable,
)
from strads.dds._storage import Storage, as_storage
from strads.dds.creation import Seed, Shape, check_shape, normal_array, uniform_array
from strads.dds.operators.methods import Operators
from strads.dds.ragged import RaggedArray, read_only
from strads.errors import ArgumentError, InputError, StradsError

_FETCHED_BYTES = 4 << 20  # fetched from the nodes at a time by an iteration over rows


class dvector(Operators):
    """Rows of numbers, records, or sequences of different lengths, changed in place by loops (thesis §7.1.2).

    Parameters
    ----------
    data : array-like, dvector or RaggedArray
        An ndarray of shape (rows, …) of any numeric or structured dtype; (nested) lists of numbers; a list of
        sequences of unequal lengths, which makes *ragged* rows (`strads.dds.RaggedArray.from_rows` also makes
        ragged rows of equal lengths). Fields of records must be numbers, bools or sub-arrays of them.
    dtype : dtype-like, optional
        By default the dtype that NumPy gives `data`. Storage is always in native byte order.
    copy : bool, default True
        With False, an ndarray or RaggedArray is adopted without a copy if it is writeable, C-contiguous and of the
        right dtype. It then becomes read-only for the caller: plans are cached by content, so all writes must go
        through strads. (Earlier views of it stay writeable; do not use them.) A dvector is always copied.

    Raises
    ------
    ArgumentError
        If `data` is not an array of numbers: strings, objects, times, single values.

    Notes
    -----
    The results of `v[…]` cannot be written through; assign with `v[…] = x`, or `v[i] = v[i] + x`. One row or a
    slice is a read-only *view*, so it shows later writes; an array of indices or a mask gives a copy. Rows of
    records are `np.record`: `v[0].user`.

    On several nodes a table moves to them when a loop or an operator first needs it there. Reading and writing work
    as before; rows read from nodes are copies (read-only for one row or a slice).

    Examples
    --------
    >>> v = dvector([[1.0, 2.0], [3.0, 4.0]])
    >>> v[0] = 5.0
    >>> v.to_list()
    [[5.0, 5.0], [3.0, 4.0]]
    """

    may_be_shared = False  # whether the caller may have kept a view of an adopted array, and write it

    def __init__(self, data: Any, dtype: DTypeLike | None = None, *, copy: bool = True) -> None:
        self._content: Content
        if isinstance(data, dvector):
            if dtype is None or resolve_dtype(dtype) == data.dtype:
                self._content = data._content.copy()
                return
            data, copy = data.storage, True
        self._content = Content.at_home(as_storage(data, dtype, copy=copy))
        self.may_be_shared = not copy

    @classmethod
    def _adopt(cls, storage: Storage) -> Self:
        """Wrap arrays created by strads, to which there are no other references."""
        table = cls(storage, copy=False)
        table.may_be_shared = False
        return table

    @classmethod
    def _of(cls, content: Content) -> Self:
        """Wrap content, wherever it is stored."""
        table = cls.__new__(cls)
        table._content = content
        return table

    @classmethod
    def zeros(cls, shape: Shape, dtype: DTypeLike = "f4") -> Self:
        """Return rows of zeros; `shape` is (rows, …) or the number of rows."""
        return cls._adopt(zeros(check_shape(shape), resolve_dtype(dtype)))

    @classmethod
    def full(cls, shape: Shape, value: Any, dtype: DTypeLike | None = None) -> Self:
        """Return rows filled with `value`; the dtype is that of the value unless given (as in `np.full`)."""
        target = None if dtype is None else resolve_dtype(dtype)
        try:
            filled = copied(np.broadcast_to(np.array(value, target), check_shape(shape)))
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(f"cannot fill rows of shape {shape} with {value!r}: {error}") from error
        return cls._adopt(filled)

    @classmethod
    def uniform(
        cls,
        shape: Shape,
        low: float = 0.0,
        high: float = 1.0,
        *,
        seed: Seed = None,
        dtype: DTypeLike = "f4",
    ) -> Self:
        """Return independent uniform numbers from [low, high); the same seed gives the same bits.

        `dtype` is float32 or float64; `seed` is an int, a NumPy Generator, or None for different numbers each
        time.
        """
        return cls._adopt(uniform_array(shape, low, high, seed, dtype))

    @classmethod
    def normal(
        cls,
        shape: Shape,
        mean: float = 0.0,
        std: float = 1.0,
        *,
        seed: Seed = None,
        dtype: DTypeLike = "f4",
    ) -> Self:
        """Return independent normal numbers; the same seed gives the same bits (see `uniform` for the arguments)."""
        return cls._adopt(normal_array(shape, mean, std, seed, dtype))

    @classmethod
    def from_numpy(cls, array: NDArray[Any], *, copy: bool = True) -> Self:
        """Return the rows of an ndarray; `copy=False` adopts it and makes it read-only for the caller."""
        if not isinstance(array, np.ndarray):
            raise ArgumentError(f"from_numpy needs an ndarray, not {type(array).__name__}: use strads.dvector(…)")
        return cls(array, copy=copy)

    @classmethod
    def from_arrow(cls, data: Any) -> Self:
        """Return the rows of an Arrow object, always copied.

        Parameters
        ----------
        data : pyarrow Table, RecordBatch, Array or ChunkedArray
            A table gives (aligned) records, an array of numbers scalars, a list array ragged rows, a fixed-size list
            array rows of that size. Bools remain bools.

        Raises
        ------
        InputError
            If a value is null; the message names column and row (from 0).
        ArgumentError
            If `data`, or a column of it, is of an unsupported type.
        """
        return cls._adopt(storage_from_arrow(data))

    @property
    def storage(self) -> Storage:
        """The writeable arrays themselves, for engines, which must call `mark_written` after writing to them.

        Rows that are only on nodes are gathered first; the nodes keep theirs until `mark_written`.
        """
        return self._content.home

    @property
    def memory(self) -> Storage | None:
        """The arrays at the driver, or None if the rows are only on nodes; gathers nothing."""
        return self._content.home if self._content.is_home else None

    @property
    def version(self) -> int:
        """Increases with each write through strads; equal versions mean equal content."""
        return self._content.version

    def version_beside(self, columns: Collection[str | int]) -> int:
        """Return a number that increases with each write through strads, except to these fields or columns only."""
        return self._content.version_beside(columns)

    def mark_written(self, columns: Collection[str | int] | None = None) -> None:
        """Declare that `storage` may have changed: increments `version`, and drops the nodes' copies.

        `columns` are the only fields of records, or columns of rows, that have changed; by default any may have.
        """
        self._content.written_at_home(columns)

    @property
    def root(self) -> Content:
        """The state that checkpoints save and restore: the content, wherever it is stored."""
        return self._content

    def checkpoint_state(self, save: Save) -> Tree:
        """Return the content as a tree; see `strads.checkpoint`."""
        return self._content.checkpoint_state(save)

    def restore_state(self, tree: Tree, load: Load) -> None:
        """Restore the content."""
        self._content.restore_state(tree, load)

    def distribute(self, cluster: Cluster, bounds: ArrayLike | None = None) -> str:
        """Ensure that the rows are on the nodes of a cluster; rows already in place are not sent again.

        Parameters
        ----------
        cluster : Cluster
            Each of its nodes then holds a part of the rows, as a `Shard`.
        bounds : (nodes + 1,) integers, optional
            Node p gets the rows `bounds[p]:bounds[p + 1]`. By default rows already on this cluster stay in place;
            others are distributed equally, by the count of their numbers if ragged.

        Returns
        -------
        str
            The shard's name in each `node.store`, valid until the next `distribute`, or until the driver writes to
            the table.

        Raises
        ------
        ArgumentError
            If the bounds do not cover all rows.
        """
        return self._content.distribute(cluster, bounds)

    def written_on_nodes(self, columns: Collection[str | int] | None = None) -> None:
        """Declare that the nodes may have changed their rows: increments `version`, and drops the driver's copy.

        `columns` are as in `mark_written`.
        """
        self._content.written_on_nodes(columns)

    @property
    def is_distributed(self) -> bool:
        """Whether the rows are on the nodes of a cluster (and possibly also at the driver)."""
        return self._content.spread is not None

    @property
    def bounds(self) -> NDArray[np.int64] | None:
        """Node p holds the rows `bounds[p]:bounds[p + 1]`; None if the rows are not on nodes."""
        spread = self._content.spread
        return None if spread is None else spread.bounds.copy()

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, …); (rows,) for records and ragged rows."""
        return self._content.layout.shape

    @property
    def ndim(self) -> int:
        """Number of axes, `len(shape)`."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the numbers, or of the records."""
        return self._content.layout.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the content."""
        return self._content.layout.nbytes

    @property
    def is_ragged(self) -> bool:
        """Whether rows may differ in length."""
        return self._content.layout.is_ragged

    @property
    def is_records(self) -> bool:
        """Whether rows are records with named fields."""
        return self.dtype.names is not None

    def __len__(self) -> int:
        return len(self._content.layout)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over rows, each as `v[i]`; those on nodes are fetched a few MiB at a time."""
        if self._content.is_home:
            yield from readable(self.storage)
            return
        step = max(1, _FETCHED_BYTES * len(self) // max(self.nbytes, 1))
        for start in range(0, len(self), step):
            yield from self[start : start + step]

    def __getitem__(self, index: Any) -> Any:
        """Return a row, a slice, rows by mask or by numbers, or the column of a field; never writable.

        If the table is stored on nodes, only the requested rows are fetched.

        Raises
        ------
        IndexError
            (also a `StradsError`) if a row does not exist; the message names the index and the number of rows.
        """
        index = checked_index(index, self._content.layout)
        try:
            if not self._content.is_home:
                with suppress(NeedsAllRows):
                    return read_remote(self._content.nodes, index)
            return read(self.storage, index)
        except RowIndexError:
            raise
        except IndexError as error:
            raise RowIndexError(str(error)) from error

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write a row, rows or a column as NumPy does, casting to the dtype. Ragged rows keep their lengths.

        Rows that are stored on nodes are written there.

        Raises
        ------
        IndexError
            (also a `StradsError`) if a row does not exist.
        InputError
            If the value does not fit.
        """
        index = checked_index(index, self._content.layout)
        try:
            self._assign(index, value.storage if isinstance(value, dvector) else value)
        except StradsError:
            raise
        except IndexError as error:
            raise RowIndexError(str(error)) from error
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"this value cannot be assigned to [{index!r:.60}] of {summary(self._content.layout)}: {error}"
            ) from error

    def _assign(self, index: Any, value: Any) -> None:
        observe(self._content, writes=True)
        if not self._content.is_home:
            with suppress(NeedsAllRows):
                assign_remote(self._content.nodes, index, value)
                self.written_on_nodes()
                return
        assign(self.storage, index, value)
        self.mark_written()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if isinstance(self.storage, RaggedArray):
            raise ArgumentError("ragged rows do not form a rectangular array: use v.to_numpy() for a list of arrays")
        target = self.dtype if dtype is None else np.dtype(dtype)
        if copy or (copy is None and target != self.dtype):
            return self.storage.astype(target, copy=True)
        if target != self.dtype:
            raise ValueError(f"converting {self.dtype} to {target} needs a copy")
        return read_only(self.storage)

    def to_numpy(self, *, copy: bool = False) -> Any:
        """Return the rows as an ndarray; ragged rows as a list of ndarrays.

        Without a copy they are read-only views that show later writes; with `copy=True` the caller owns them.
        """
        if isinstance(self.storage, RaggedArray):
            values = self.storage.values.copy() if copy else read_only(self.storage.values)
            return list(RaggedArray(values, self.storage.offsets))
        return self.storage.copy() if copy else read_only(self.storage)

    def to_list(self) -> list[Any]:
        """Return the rows as Python numbers, (nested) lists of them, or tuples for records."""
        return self.storage.to_list() if isinstance(self.storage, RaggedArray) else self.storage.tolist()

    def __copy__(self) -> Self:
        """Copy the content, too: tables that shared memory would not notice each other's writes."""
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def copy(self) -> Self:
        """Return an independent dvector with the same content, at version 0: on the nodes, if the rows are there."""
        return self._of(self._content.copy())

    def __repr__(self) -> str:
        rows = self[: min(SHOWN_ROWS, len(self))] if len(self) else ()
        spread = self._content.spread
        return display(self._content.layout, rows, None if spread is None else spread.cluster.size)


from_numpy, from_arrow = dvector.from_numpy, dvector.from_arrow
