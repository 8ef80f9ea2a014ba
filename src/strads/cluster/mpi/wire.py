"""Wire format between MPI processes: envelopes of messages, and the MPI tags of puts."""

import struct

import numpy as np

from strads.cluster.messages import Bytes, Message

_HEAD = struct.Struct("<qqI")  # run, tag, number of parts
_INLINE = 2048  # bytes of parts in an envelope: small enough for MPI's eager protocol
_TINY = 256  # a part of at most this many bytes always travels in the envelope
_TAG_BITS = 20  # bits of a program's tag


def pack(run: int, tag: int, message: Message) -> tuple[bytes, list[Bytes]]:
    """Return the envelope, which contains the small parts of a message, and the parts that travel separately."""
    parts = (np.frombuffer(message.header, np.uint8), *message.buffers)
    sizes, inline, apart, used = [], [], [], 0
    for part in parts:
        if part.nbytes <= _TINY or used + part.nbytes <= _INLINE:
            used += part.nbytes
            inline.append(part.tobytes())
            sizes.append(part.nbytes)
        else:
            apart.append(part)
            sizes.append(~part.nbytes)  # negative: not in the envelope
    table = struct.pack(f"<{len(sizes)}q", *sizes)
    return b"".join((_HEAD.pack(run, tag, len(sizes)), table, *inline)), apart


def unpack(envelope: bytes) -> tuple[int, int, list[Bytes], list[Bytes]]:
    """Return run, tag, all parts of the message, and those among them that are still to be received."""
    run, tag, count = _HEAD.unpack_from(envelope)
    sizes = struct.unpack_from(f"<{count}q", envelope, _HEAD.size)
    at = _HEAD.size + 8 * count
    parts, apart = [], []
    for size in sizes:
        if size >= 0:  # copied: arrays need their own aligned and writable memory
            parts.append(np.frombuffer(envelope, np.uint8, size, at).copy())
            at += size
        else:
            parts.append(np.empty(~size, np.uint8))
            apart.append(parts[-1])
    return run, tag, parts, apart


class PutTags:
    """MPI tags of puts: the program's tag in the low bits, the last bits of the run's number above."""

    def __init__(self, most: int):
        self._runs = (most + 1) >> _TAG_BITS
        if self._runs < 4:
            raise ValueError(f"MPI tags up to {most} are too small")

    def encode(self, run: int, tag: int) -> int:
        """Return the MPI tag."""
        return (run % self._runs) << _TAG_BITS | tag

    def decode(self, code: int, near: int) -> tuple[int, int]:
        """Return run and tag; among the runs with these last bits, the one nearest to `near` is chosen."""
        ahead = ((code >> _TAG_BITS) - near) % self._runs
        if ahead > self._runs // 2:
            ahead -= self._runs
        return near + ahead, code & ((1 << _TAG_BITS) - 1)
