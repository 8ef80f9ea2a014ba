"""TransE by PyKEEN on a CPU, with a Python that has pykeen and torch; prints triples a second, wall and CPU, as JSON.

Called by `transe.py`; does not import strads. PyKEEN's defaults (one negative a triple, margin ranking), and Adam; the
batch is the given one, since its default of 256 is slow on CPUs.
"""

import argparse
import json
import time

import numpy as np
import torch
from pykeen.models import TransE
from pykeen.training import SLCWATrainingLoop
from pykeen.triples import CoreTriplesFactory


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
    seconds, cpu = [], []
    for _ in range(options.epochs + 1):
        start, start_cpu = time.perf_counter(), time.process_time()
        loop.train(triples_factory=factory, num_epochs=1, batch_size=options.batch, use_tqdm=False)
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - start_cpu)
    print(json.dumps([len(triples) / min(seconds[1:]), len(triples) / min(cpu[1:])]))


if __name__ == "__main__":
    main()
