"""TransE by PyKEEN on a CPU, with a Python that has pykeen and torch; prints triples a second, wall and CPU, as JSON.

Called by `transe.py`; does not import strads. PyKEEN's defaults (one negative a triple, margin ranking), and Adam; the
batch is the given one, since its default of 256 is slow on CPUs.
"""

import argparse
import json
import time
from typing import Any

import numpy as np
import torch
from pykeen.models import TransE
from pykeen.training import SLCWATrainingLoop, TrainingCallback
from pykeen.triples import CoreTriplesFactory


class Clock(TrainingCallback):
    """Notes the wall and CPU time at the end of each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[tuple[float, float]] = []

    def post_epoch(self, *args: Any, **kwargs: Any) -> None:
        self.times.append((time.perf_counter(), time.process_time()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--negatives", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    file = np.load(options.data)
    entities, relations = int(file["entities"]), int(file["relations"])
    triples = torch.as_tensor(file["triples"], dtype=torch.long)
    factory = CoreTriplesFactory.create(triples, num_entities=entities, num_relations=relations)
    model = TransE(triples_factory=factory, embedding_dim=50, random_seed=0)
    loop = SLCWATrainingLoop(
        model=model,
        triples_factory=factory,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
        negative_sampler_kwargs={"num_negs_per_pos": options.negatives},
    )
    clock = Clock()
    # In one call: `train` goes on from the epoch where it is, so that a second call with the same number does nothing.
    epochs = options.epochs + 1
    loop.train(factory, num_epochs=epochs, batch_size=options.batch, use_tqdm=False, callbacks=clock)
    assert len(clock.times) == epochs
    print(json.dumps([len(triples) / float(seconds) for seconds in np.diff(clock.times, axis=0).min(0)]))


if __name__ == "__main__":
    main()
