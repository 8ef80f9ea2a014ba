"""The operators, as methods of tables."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from strads.checkpoints import observe
from strads.cluster import Runtime, current
from strads.dds._dtypes import resolve_dtype
from strads.dds._layout import take
from strads.dds._placement import Content
from strads.dds.operators.functions import Function, place_of
from strads.dds.operators.grouping import group_program, grouped_columns, join_at_driver, join_program, joined_fields
from strads.dds.operators.jobs import RowJob
from strads.dds.operators.mapping import choose_rows, map_rows
from strads.dds.operators.programs import filter_program, map_program, reduce_program, settled, transform_program
from strads.dds.operators.reducing import combine, reduce_rows
from strads.dds.operators.transforming import transform_rows
from strads.errors import ArgumentError, InputError
from strads.user_code.sent_functions import sent_to

if TYPE_CHECKING:
    from strads.dds.dmultimap import dmultimap
    from strads.dds.dvector import dvector

logger = logging.getLogger("strads.dds")


class Operators:
    """Operators on the rows of a `dvector`.

    Functions of a row are compiled by Numba and run on all threads of all nodes. One that cannot be compiled runs in
    Python, row by row on each node; the logger `strads.dds` reports this, with the reason, at level INFO.
    """

    _content: Content

    def map(self: Any, function: Function, *args: Any, dtype: DTypeLike | None = None) -> "dvector":
        """Return a new table of a function's results for each row, in the same order.

        Parameters
        ----------
        function : callable
            Called as `function(row, *args)`; must not change the row. It returns a number; a tuple of numbers (a row);
            a named tuple or dict of numbers (a record); a record; or an array or list of numbers: a row if all have
            the same length, otherwise a ragged row; always ragged if this table is.
        *args
            Numbers, arrays or tables, each passed in full to every call, not compiled into the function.
        dtype : dtype-like, optional
            Dtype of the result; by default that of the results. Compiled, float32 with a Python number is float64.

        Returns
        -------
        dvector
            On the same nodes as this table's rows.

        Raises
        ------
        BodyError
            If the function raises; the message names the row and the line.
        InputError
            If it returns anything but numbers, or results of different kinds.
        """
        wanted = None if dtype is None else resolve_dtype(dtype)
        return _make(self, "map", function, args, map_program, (wanted,), lambda job: _map_at_driver(job, wanted))

    def filter(self: Any, function: Function, *args: Any) -> "dvector":
        """Return a new table of the rows for which a function is true, in the same order.

        Parameters
        ----------
        function : callable
            Called as `function(row, *args)`; must not change the row.
        *args
            As for `map`.

        Raises
        ------
        BodyError
            If the function raises; the message names the row and the line.
        """
        return _make(self, "filter", function, args, filter_program, (), _filter_at_driver)

    def transform(self: Any, function: Function, *args: Any) -> None:
        """Change each row in place.

        Parameters
        ----------
        function : callable
            Called as `function(row, *args)`. It returns the new row (cast to the dtype), or, if rows are arrays or
            records, writes to the row and returns None.
        *args
            As for `map`.

        Raises
        ------
        BodyError
            If the function raises; the message names the row and the line. Rows changed before keep their changes.
        InputError
            If its result does not fit the row.
        """
        _check_function("transform", function)
        whole = _whole(args)
        observe(self._content, writes=True)
        runtime = current()
        if runtime.is_local:
            try:
                reason = transform_rows(_local_job(self, runtime, "transform", function, whole))
            finally:
                self.mark_written()
        else:
            name = self.distribute(runtime.cluster)
            try:
                reason = runtime.run(transform_program, name, sent_to(runtime.cluster, function), whole)[0]
            finally:
                self.written_on_nodes()
        _tell("transform", function, reason)

    def reduce(self: Any, function: Function, initial: Any = None) -> Any:
        """Combine all rows, two at a time, into one.

        Parameters
        ----------
        function : callable
            Called as `function(a, b)`; takes and returns values of the rows' type. It must be associative: the rows of
            each node are combined from left to right in chunks, then the chunks' results, then the nodes'.
        initial : optional
            Combined with the first result; returned if the table has no rows.

        Returns
        -------
        A NumPy number or array. It does not depend on timing or on the number of threads; sums of floats depend on the
        number of nodes.

        Raises
        ------
        InputError
            If there are no rows, and no `initial`.
        BodyError
            If the function raises; the message names the line.

        Examples
        --------
        >>> import strads
        >>> strads.dvector([1, 2, 3]).reduce(lambda a, b: a + b)
        np.int64(6)
        """
        _check_function("reduce", function)
        runtime = current()
        if runtime.is_local:
            job = _local_job(self, runtime, "reduce", function, ())
            found = [([total], reason) for total, reason in ([reduce_rows(job)] if len(self) else [])]
        else:
            found = runtime.run(reduce_program, self.distribute(runtime.cluster), sent_to(runtime.cluster, function))
        totals = [] if initial is None else [initial]
        totals += [total for node, _ in found for total in node]
        _tell("reduce", function, next((reason for _, reason in found if reason), None))
        if not totals:
            raise InputError("a table without rows has nothing to reduce: give an initial value, reduce(f, initial)")
        return combine("reduce", function, totals, None)

    def group_by_key(self: Any, key: str | None = None) -> "dmultimap":
        """Group the rows by key: return a `dmultimap` of the rest of each row.

        Parameters
        ----------
        key : str, optional
            The key field of records; by default the first. For rows of integers, the first column is the key.

        Returns
        -------
        dmultimap
            Key → numbers if only one field (or column) is left; otherwise records (or rows) of the others. Values keep
            the order of the rows. On several nodes each gets the rows of some of the keys.

        Raises
        ------
        ArgumentError
            If there is no such field, it does not hold integers, or rows have no other field.
        """
        from strads.dds.dmultimap import dmultimap  # here, as a dmultimap is itself made of a dvector

        columns = grouped_columns(self._content.layout, key)
        runtime = current()
        if runtime.is_local:
            rows = self.to_numpy()
            return dmultimap(columns.keys(rows), columns.values(rows))
        new_name = runtime.cluster.new_name()
        made = runtime.run(group_program, self.distribute(runtime.cluster), new_name, columns)
        return dmultimap._from_nodes(runtime.cluster, new_name, made, columns.row_shape)

    def join(self: Any, other: "dvector", on: str | list[str], *, suffix: str = "_right") -> "dvector":
        """Join each record of this table with every record of another table that has the same key.

        Parameters
        ----------
        other : dvector of records
            The table to look keys up in.
        on : str or list of str
            Integer fields of both tables that must be equal.
        suffix : str
            Appended to the names of those fields of `other` that this table also has.

        Returns
        -------
        dvector
            Records of all fields of this table and the remaining fields of `other`; in the order of this table's rows,
            and for each in the order of the other's. Records without a match are dropped.

        Raises
        ------
        ArgumentError
            If a table does not hold records, or a field is missing or does not hold integers.
        """
        if not isinstance(other, Operators):
            raise ArgumentError(f"join takes another dvector, not {type(other).__name__}")
        fields = joined_fields(self._content.layout, other._content.layout, on, suffix)
        runtime = current()
        if runtime.is_local:
            return type(self)._adopt(join_at_driver(self.to_numpy(), other.to_numpy(), fields))
        names = self.distribute(runtime.cluster), other.distribute(runtime.cluster)
        new_name = runtime.cluster.new_name()
        layout, bounds = runtime.run(join_program, *names, new_name, fields)[0]
        return type(self)._of(Content.on_nodes(runtime.cluster, new_name, layout, bounds))


def _make(
    table: Any,
    operator: str,
    function: Function,
    args: tuple[Any, ...],
    program: Callable[..., Any],
    more: tuple[Any, ...],
    at_driver: Callable[[RowJob], tuple[Any, str | None]],
) -> Any:
    """Make a table from another, at the driver or on the nodes."""
    _check_function(operator, function)
    whole = _whole(args)
    runtime = current()
    if runtime.is_local:
        rows, reason = at_driver(_local_job(table, runtime, operator, function, whole))
        made = type(table)._adopt(rows)
    else:
        name, new_name = table.distribute(runtime.cluster), runtime.cluster.new_name()
        sent = sent_to(runtime.cluster, function)
        layout, bounds, reason = runtime.run(program, name, new_name, sent, whole, *more)[0]
        made = type(table)._of(Content.on_nodes(runtime.cluster, new_name, layout, bounds))
    _tell(operator, function, reason)
    return made


def _local_job(table: Any, runtime: Runtime, operator: str, function: Function, args: tuple[Any, ...]) -> RowJob:
    return RowJob(operator, function, args, table.storage, 0, table._content.layout, runtime.team())


def _map_at_driver(job: RowJob, dtype: np.dtype | None) -> tuple[Any, str | None]:
    result, reason = map_rows(job)
    return settled(job, result, dtype, lambda value: [value]), reason


def _filter_at_driver(job: RowJob) -> tuple[Any, str | None]:
    chosen, reason = choose_rows(job)
    return take(job.rows, np.flatnonzero(chosen)), reason


def _check_function(operator: str, function: object) -> None:
    if not callable(function):
        raise ArgumentError(f"{operator} takes a function of a row, not {type(function).__name__}")


def _whole(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with tables converted to arrays."""
    return tuple(arg.to_numpy() if isinstance(arg, Operators) else arg for arg in args)  # type: ignore[attr-defined]


def _tell(operator: str, function: Function, reason: str | None) -> None:
    if reason is not None:
        logger.info("%s runs in Python, not compiled, because %s\n  %s", operator, reason, place_of(function))
