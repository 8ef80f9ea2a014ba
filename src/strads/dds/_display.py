"""Text representation of a dvector."""

from collections.abc import Iterable
from typing import Any

from strads.dds._layout import Layout

_WIDTH = 100  # characters of a line
SHOWN_ROWS = 3


def summary(layout: Layout) -> str:
    """Kind, number of rows and dtype, in one line."""
    return f"a dvector of {len(layout):,} rows of {kind_of_rows(layout)}"


def kind_of_rows(layout: Layout) -> str:
    """What each row is."""
    if layout.is_ragged:
        return f"different lengths ({layout.values:,} × {layout.dtype})"
    if layout.dtype.names is not None:
        fields = ", ".join(f"{name}: {layout.dtype[name]}" for name in layout.dtype.names)
        return f"records ({fields})"
    if len(layout.shape) == 1:
        return f"{layout.dtype}"
    return f"{' × '.join(map(str, layout.shape[1:]))} {layout.dtype}"


def display(layout: Layout, rows: Iterable[Any], nodes: int | None) -> str:
    """Summary, memory, number of nodes, and the given first rows."""
    shown = [_row(i, row) for i, row in enumerate(rows)]
    more = ["  …"] if len(layout) > len(shown) else []
    where = "" if nodes is None else f", on {nodes} node{'s' if nodes > 1 else ''}"
    return "\n".join([f"{summary(layout)}, {memory(layout.nbytes)}{where}", *shown, *more])


def _row(number: int, row: object) -> str:
    text = " ".join(f"  [{number}] {row}".split())
    return f"  {text if len(text) <= _WIDTH else text[: _WIDTH - 1] + '…'}"


def memory(count: float) -> str:
    """A number of bytes in human-readable units."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"
