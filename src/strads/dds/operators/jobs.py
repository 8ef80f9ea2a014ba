"""A user's function and the rows of one node that it is applied to."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from strads.cluster import ThreadTeam
from strads.dds._layout import Layout
from strads.dds._selection import readable
from strads.dds._storage import Storage
from strads.dds.operators.functions import CompiledFunction, Function, compile_for_rows, failure

_CHUNKS_A_THREAD = 8  # so that threads end at about the same time
_MIN_ROWS = 256  # per chunk


@dataclass(frozen=True)
class RowJob:
    """A user's function and the rows of this node that it is applied to.

    Attributes
    ----------
    operator
        Name of the operator, such as "map", for error messages.
    function, args
        Called as `function(row, *args)`.
    rows
        The rows of this node.
    first
        Number of the first of these rows in the table.
    layout
        Layout of the whole table.
    team
        The threads of this node.
    """

    operator: str
    function: Function
    args: tuple[Any, ...]
    rows: Storage
    first: int
    layout: Layout
    team: ThreadTeam

    def compiled(self, *, writes: bool = False, rows: int = 1) -> CompiledFunction | str:
        """Return the function, compiled for these rows."""
        return compile_for_rows(self.function, self.layout, self.args, rows=rows, writes=writes)

    def kernel(self, compiled: CompiledFunction, name: str, make: Callable[[], Any]) -> Any:
        """Return an operator's kernel around the function; made once."""
        key = name, self.layout.is_ragged
        if key not in compiled.kernels:
            compiled.kernels[key] = make()
        return compiled.kernels[key]

    def call(self, row: Any, number: int) -> Any:
        """Call the function in Python."""
        try:
            return self.function(row, *self.args)
        except Exception as error:
            raise failure(self.operator, self.function, self.first + number, error) from error

    def in_chunks(self, work: Callable[[int, int, int], None], size: int, explain: Callable[[int, int], None]) -> None:
        """Call `work(chunk, first, last)` for chunks of rows, on all threads.

        If any fail, `explain(first, last)` is called for the first of these: it raises the error for the user.
        """
        count = len(self.rows)
        failed: dict[int, Exception] = {}

        def run(chunk: int) -> None:
            try:
                work(chunk, chunk * size, min((chunk + 1) * size, count))
            except Exception as error:
                failed[chunk] = error

        self.team.for_each(run, -(-count // size))
        if failed:
            chunk = min(failed)
            explain(chunk * size, min((chunk + 1) * size, count))
            raise failure(self.operator, self.function, None, failed[chunk]) from failed[chunk]

    @property
    def chunk_size(self) -> int:
        """Return the number of rows that a thread takes at a time."""
        return max(_MIN_ROWS, -(-len(self.rows) // (self.team.size * _CHUNKS_A_THREAD)))

    def explain_pure(self, first: int, last: int) -> None:
        """Raise the error of the first row that fails, for a function without side effects."""
        rows = readable(self.rows[first:last])
        for number, row in enumerate(rows, first):
            self.call(row, number)
