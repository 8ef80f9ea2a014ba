"""A table behind torch.distributed.rpc: batches of rows are fetched from, or added to, a tensor of another process.

Run by `parameter_server.py` with a Python that has torch and NumPy; prints JSON: rows a second of each variant.
"""

import argparse
import json
import multiprocessing
import os
import time
from collections import deque
from typing import Any

import torch
from torch.distributed import rpc

_table = torch.empty(0)


def prepare(rows: int, columns: int) -> None:
    global _table
    _table = torch.zeros(rows, columns)


def fetch(rows: torch.Tensor) -> torch.Tensor:
    return _table.index_select(0, rows)


def add(rows: torch.Tensor, deltas: torch.Tensor) -> None:
    _table.index_add_(0, rows, deltas)


def timed(function: Any, calls: list[tuple[Any, ...]], count: int, window: int) -> float:
    """Return rows a second with so many calls in flight."""
    flying: deque[Any] = deque()
    start = time.perf_counter()
    for number in range(count):
        if len(flying) == window:
            flying.popleft().wait()
        flying.append(rpc.rpc_async("server", function, args=calls[number % len(calls)]))
    while flying:
        flying.popleft().wait()
    return count * len(calls[0][0]) / (time.perf_counter() - start)


def run(rank: int, options: argparse.Namespace) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(options.port)}
    torch.set_num_threads(1)
    backend = rpc.TensorPipeRpcBackendOptions(num_worker_threads=options.threads)
    rpc.init_rpc(("client", "server")[rank], rank=rank, world_size=2, rpc_backend_options=backend)
    if rank == 0:
        rpc.rpc_sync("server", prepare, args=(options.rows, options.columns))
        generator = torch.Generator().manual_seed(0)
        batches = [torch.randperm(options.rows, generator=generator)[: options.batch] for _ in range(32)]
        deltas = torch.ones(options.batch, options.columns)
        found = {}
        for window in (1, options.window):
            for name, function, calls in (
                ("get", fetch, [(rows,) for rows in batches]),
                ("inc", add, [(rows, deltas) for rows in batches]),
            ):
                timed(function, calls, 20, window)
                found[name if window == 1 else f"{name}, {window} in flight"] = timed(
                    function, calls, options.count, window
                )
        print(json.dumps(found), flush=True)
    rpc.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (
        ("rows", 100_000),
        ("columns", 64),
        ("batch", 1_000),
        ("count", 1_000),
        ("port", 29_511),
        ("window", 8),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--threads", type=int, default=4, help="that serve calls, of each process")
    options = parser.parse_args()
    processes = [multiprocessing.get_context("spawn").Process(target=run, args=(rank, options)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
