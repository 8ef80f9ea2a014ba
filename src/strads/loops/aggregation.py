"""How the changes that replicas have made to a table are combined (thesis §7.1.3)."""

import weakref

from strads.dds import dvector
from strads.dds.arguments import table_of
from strads.engine.minibatch.data_parallel import Aggregation
from strads.errors import ArgumentError

_registered: "weakref.WeakKeyDictionary[dvector, Aggregation]" = weakref.WeakKeyDictionary()


def register_aggregation(table: object, function: Aggregation) -> None:
    """Choose how `sync_for` combines the changes that the tasks of a round have made to a table.

    Parameters
    ----------
    table
        A dvector or a map of numbers.
    function
        "average", the default: replicas are averaged over all tasks of the round, including those that have not
        touched a row. "sum": changes are added. Or a function that maps the changes of all tasks, an array of shape
        (tasks, rows, …), to those of the table, an array of shape (rows, …). It is called on each node for the rows
        stored there (with `recon=True`: those that some task has touched), so it must treat each row independently.
        The changes are ordered by worker; tasks that have touched none of these rows come last, as zeros. A function
        requires rounds: `BSP()` or `Hybrid()`.

    Raises
    ------
    ArgumentError
        For any other argument.
    """
    found = table_of(table)
    if found is None:
        raise ArgumentError(f"register_aggregation takes a dvector or a map, not {type(table).__name__}")
    if function not in ("average", "sum") and not callable(function):
        raise ArgumentError(f'aggregation {function!r} is unknown: give "average", "sum" or a function')
    _registered[found] = function


def aggregation_of(table: dvector) -> Aggregation:
    """Return the aggregation registered for a table."""
    return _registered.get(table, "average")
