"""Messages between nodes: a pickled header, and the memory of arrays out of band, so that arrays are not copied."""

import io
import pickle
from types import FunctionType
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_EVERYWHERE = frozenset({"builtins", "copyreg", "functools", "numpy", "strads"})  # packages that every node can import


class Message(NamedTuple):
    """A serialized value; the buffers are the memory of its arrays, not copies."""

    header: bytes  # pickle of the value, without the contents of its arrays
    buffers: tuple[Bytes, ...]  # those contents, in the order in which the pickle refers to them

    @property
    def nbytes(self) -> int:
        """Bytes to send."""
        return len(self.header) + sum(buffer.nbytes for buffer in self.buffers)

    def copy(self) -> "Message":
        """Return a message with its own memory."""
        return Message(self.header, tuple(buffer.copy() for buffer in self.buffers))


def encode(value: Any, *, functions: bool = False) -> Message:
    """Encode a value; `functions` admits functions not importable by name (closures, functions of `__main__`)."""
    buffers: list[pickle.PickleBuffer] = []
    header = _by_name(value, buffers) if functions else None
    if header is None:
        buffers.clear()
        dumps = cloudpickle.dumps if functions else pickle.dumps
        header = dumps(value, protocol=5, buffer_callback=buffers.append)
    return Message(header, tuple(np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers))


class _ByName(pickle.Pickler):
    """Refuses functions and classes that a node might not find by their names."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, FunctionType | type) and value.__module__.partition(".")[0] not in _EVERYWHERE:
            raise pickle.PicklingError(f"{value.__qualname__} of {value.__module__}")
        return NotImplemented


def _by_name(value: Any, buffers: list[pickle.PickleBuffer]) -> bytes | None:
    """Return the pickle of a value whose functions are those of strads and NumPy, as in most calls; None for others.

    It takes half as long as with cloudpickle, which looks up where each function comes from.
    """
    file = io.BytesIO()
    try:
        _ByName(file, 5, buffer_callback=buffers.append).dump(value)
    except Exception:  # cloudpickle knows more types, and reports what it does not know
        return None
    return file.getvalue()


def decode(message: Message) -> Any:
    """Return the value; its arrays share the message's buffers."""
    return pickle.loads(message.header, buffers=message.buffers)


def as_bytes(array: NDArray[Any]) -> Bytes:
    """Return the memory of a C-contiguous array of any dtype.

    Raises
    ------
    ValueError
        If the array is not C-contiguous.
    """
    if not array.flags.c_contiguous:
        raise ValueError(f"an array of shape {array.shape} with strides {array.strides} is not contiguous")
    return array.reshape(-1).view(np.uint8)
