"""A replica in a process of its own: it goes on from its last saved file, and reports a digest after every batch."""

import os
from multiprocessing.connection import Connection
from pathlib import Path

import strads
from replicas.logs import MODELS, feed


def saved(folder: Path) -> list[Path]:
    """Return the saved models, the last one first; a file's name says how many batches it has seen."""
    return sorted(folder.glob("[!.]*.npz"), reverse=True)


def live(name: str, seed: int, batches: int, folder: str, every: int, nodes: int, n_jobs: int, to: Connection) -> None:
    """Feed a replica from where it stands to the end of the log.

    Parameters
    ----------
    name, seed
        Of the log.
    batches
        Length of the log.
    folder
        Where models are saved.
    every
        Number of batches between two savings; 0: never.
    nodes, n_jobs
        Logical nodes; with one node, threads.
    to
        Receives pairs of a batch's number and the digest after it.
    """
    os.setpgid(0, 0)  # Ctrl-C is for the parent
    files = saved(Path(folder))
    model = type(MODELS[name](None)).load(files[0]) if files else MODELS[name](n_jobs)
    start = int(files[0].stem) if files else 0
    model.set_params(n_jobs=n_jobs)
    with strads.init(nodes=nodes):
        for number in range(start, batches):
            model = feed(model, name, seed, number)
            to.send((number, model.digest()))
            if every and (number + 1) % every == 0:
                model.save(Path(folder) / f"{number + 1:08}.npz")
                for old in saved(Path(folder))[2:]:
                    old.unlink()
    to.send(None)
