"""What a dvector shows of itself."""

from strads.dds._ragged import RaggedArray
from strads.dds._storage import Storage

_WIDTH = 100
_ROWS = 3


def summary(storage: Storage) -> str:
    """Kind, number of rows and dtype, in one line."""
    rows = f"a dvector of {len(storage):,} rows"
    if isinstance(storage, RaggedArray):
        return f"{rows} of different lengths ({len(storage.values):,} × {storage.dtype})"
    if storage.dtype.names is not None:
        fields = ", ".join(f"{name}: {storage.dtype[name]}" for name in storage.dtype.names)
        return f"{rows} of records ({fields})"
    if storage.ndim == 1:
        return f"{rows} of {storage.dtype}"
    return f"{rows} of {' × '.join(map(str, storage.shape[1:]))} {storage.dtype}"


def display(storage: Storage) -> str:
    """The summary, the memory taken, and the first rows."""
    shown = [_row(i, storage[i]) for i in range(min(_ROWS, len(storage)))]
    more = ["  …"] if len(storage) > len(shown) else []
    return "\n".join([f"{summary(storage)}, {_memory(storage.nbytes)}", *shown, *more])


def _row(number: int, row: object) -> str:
    text = " ".join(f"  [{number}] {row}".split())
    return f"  {text if len(text) <= _WIDTH else text[: _WIDTH - 1] + '…'}"


def _memory(count: float) -> str:
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"
