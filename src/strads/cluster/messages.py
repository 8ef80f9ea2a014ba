"""Messages between nodes: a pickled header, and the memory of arrays beside it, so that arrays are not copied."""

import pickle
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


class Message(NamedTuple):
    """A value as bytes; the buffers are the memory of its arrays, not a copy."""

    header: bytes
    buffers: tuple[Bytes, ...]

    @property
    def nbytes(self) -> int:
        """Bytes to send."""
        return len(self.header) + sum(buffer.nbytes for buffer in self.buffers)

    def copy(self) -> "Message":
        """Return a message with memory of its own."""
        return Message(self.header, tuple(buffer.copy() for buffer in self.buffers))


def encode(value: Any, *, functions: bool = False) -> Message:
    """Encode a value; `functions` admits those that cannot be imported by name (closures, those of `__main__`)."""
    buffers: list[pickle.PickleBuffer] = []
    dumps = cloudpickle.dumps if functions else pickle.dumps
    header = dumps(value, protocol=5, buffer_callback=buffers.append)
    return Message(header, tuple(np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers))


def decode(message: Message) -> Any:
    """Return the value; its arrays live in the message's buffers."""
    return pickle.loads(message.header, buffers=message.buffers)


def as_bytes(array: NDArray[Any]) -> Bytes:
    """Return the memory of a C-contiguous array, whatever its dtype.

    Raises
    ------
    ValueError
        If the array is not C-contiguous.
    """
    if not array.flags.c_contiguous:
        raise ValueError(f"an array of shape {array.shape} with strides {array.strides} is not contiguous")
    return array.reshape(-1).view(np.uint8)
