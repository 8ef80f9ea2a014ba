"""DSGD (Gemulla et al. 2011) written by hand with mpi4py and Numba, as tuned as we could make it (thesis §6.1.6).

Nothing here knows strads. Each process pins a range of users of equal work, with their ratings sorted by block. The
items are cut into more blocks of equal work than there are processes; they travel on the ring: while a process works
on one block, those it has finished are in flight to its right neighbour, and others arrive from its left into memory
that was named beforehand. Blocks stay where an epoch ends, so each is sent one time less than there are processes.

Run by `mpi_by_hand.py`.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI
from numba import njit
from numpy.typing import NDArray


def make_kernel(rank: int) -> Callable[..., float]:
    """Compile SGD over the cells of one block of items.

    A constant rank, with which the compiler unrolls the loops over factors, is 8% faster where it fills whole vectors;
    where it does not (40 = 2.5 × 16), what the compiler makes of it is half as fast as the plain loop.
    """
    constant = rank % 64 == 0

    @njit(nogil=True, fastmath=True, error_model="numpy")
    def visit(offsets, ratings, W, H, lr, reg):
        loss = 0.0
        for tile in range(len(offsets)):
            for k in range(offsets[tile, 0], offsets[tile, 1]):
                r = ratings[k]
                w, h = W[r.user], H[r.item]
                factors = rank if constant else len(w)
                err = r.score
                for f in range(factors):
                    err -= w[f] * h[f]
                for f in range(factors):
                    wf = w[f]
                    w[f] += lr * (err * h[f] - reg * wf)
                    h[f] += lr * (err * wf - reg * h[f])
                loss += err * err
        return loss

    return visit


def equal_work(work: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
    """Cut rows into contiguous parts of about equal work; returns the `parts + 1` bounds."""
    before = np.concatenate([[0], np.cumsum(work)])
    cuts = np.searchsorted(before, before[-1] * np.arange(1, parts) / parts)
    return np.concatenate([[0], cuts, [len(work)]]).astype(np.int64)


class Dsgd:
    """One process's part.

    Parameters
    ----------
    comm
        The processes.
    ratings
        All ratings; this process copies its own.
    W, H
        The factors, float32. Of W only this process's rows are used; H is its buffer for all blocks.
    blocks
        Blocks of items for each process.
    tiles
        Ranges of users for each process, so that a cell's factors stay in the core's cache.
    """

    def __init__(
        self,
        comm: MPI.Comm,
        ratings: NDArray[np.void],
        W: NDArray[np.float32],
        H: NDArray[np.float32],
        blocks: int,
        tiles: int,
    ):
        self.comm, self.W, self.H = comm, W, H
        self.size, self.me = comm.Get_size(), comm.Get_rank()
        self.blocks, count = blocks, blocks * self.size
        users = equal_work(np.bincount(ratings["user"], minlength=len(W)), self.size * tiles)
        self.cuts = equal_work(np.bincount(ratings["item"], minlength=len(H)), count)
        low, high = users[self.me * tiles], users[(self.me + 1) * tiles]
        own = ratings[(ratings["user"] >= low) & (ratings["user"] < high)]
        tile = np.searchsorted(users, own["user"], side="right") - 1 - self.me * tiles
        block = np.searchsorted(self.cuts, own["item"], side="right") - 1
        cell = (block * tiles + tile).astype(np.uint16)
        bounds = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=count * tiles))])
        self.offsets = np.stack([bounds[:-1], bounds[1:]], axis=1).reshape(count, tiles, 2)
        self.ratings = own[np.argsort(cell, kind="stable")]
        self.kernel = make_kernel(W.shape[1])
        self.shift = 0  # how far the groups of blocks have travelled in the epochs so far
        self.bytes_sent = 0

    def group(self, hop: int) -> range:
        """Blocks that are here after so many hops of this epoch."""
        first = (self.me - hop + self.shift) % self.size * self.blocks
        return range(first, first + self.blocks)

    def rows(self, block: int) -> NDArray[np.float32]:
        """Memory of a block."""
        return self.H[self.cuts[block] : self.cuts[block + 1]]

    def epoch(self, lr: np.float32, reg: np.float32) -> float:
        """Process every rating once; returns the sum of squared errors on process 0."""
        left, right = (self.me - 1) % self.size, (self.me + 1) % self.size
        arrivals = {
            block: self.comm.Irecv(self.rows(block), left, block)
            for hop in range(1, self.size)
            for block in self.group(hop)
        }
        departures: list[MPI.Request] = []
        loss = 0.0
        for hop in range(self.size):
            for block in self.group(hop):
                if hop > 0:
                    arrivals.pop(block).Wait()
                loss += self.kernel(self.offsets[block], self.ratings, self.W, self.H, lr, reg)
                if hop < self.size - 1:
                    departures.append(self.comm.Isend(self.rows(block), right, block))
                    self.bytes_sent += self.rows(block).nbytes
                MPI.Request.Testsome([*departures, *arrivals.values()])  # lets MPI move data
        MPI.Request.Waitall(departures)
        self.shift += 1
        total: Any = self.comm.reduce(loss)
        self.comm.Barrier()
        return total if self.me == 0 else 0.0


def train(
    ratings: NDArray[np.void],
    W: NDArray[np.float32],
    H: NDArray[np.float32],
    lr: float,
    reg: float,
    epochs: int,
    blocks: int,
    tiles: int,
) -> dict[str, Any]:
    """Train for some epochs after a first one; times and losses on process 0."""
    comm = MPI.COMM_WORLD
    model = Dsgd(comm, ratings, W, H, blocks, tiles)
    seconds, losses, sent = [], [], 0
    for _ in range(epochs + 1):
        comm.Barrier()
        sent, start = model.bytes_sent, time.perf_counter()
        loss = model.epoch(np.float32(lr), np.float32(reg))
        seconds.append(time.perf_counter() - start)
        losses.append(loss / len(ratings))
    return {
        "seconds": seconds[1:],
        "losses": losses,
        "bytes_sent": comm.allgather(model.bytes_sent - sent),
        "first": seconds[0],
    }
