"""TransE on FB15k-237, d = 50: triples a second beside PyKEEN's, accuracy, and the same model on every backend.

PyKEEN runs in a process of its own, with a Python that has `pykeen` and `torch` (`--pykeen`); without one, that side is
left out. Sides take turns, with the same number of negatives a triple: 1, PyKEEN's default, and 16, that of strads.
Times are those of epochs after the first, which compiles. Where FB15k-237 is missing, speeds are those of random
triples of its size.

    python benchmarks/transe.py [--pykeen venv/bin/python] [--scale 1.0] [--rounds 3] [--parts speed quality backends]

`--scale` takes that share of the triples, and of the epochs.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _jobs import BASE, VARIANTS, add_job_options, finish, run_variants, started

import strads
from strads.models import TransE, read_triples

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "fb15k-237"
ENTITIES, RELATIONS, TRIPLES = 14_541, 237, 272_115
TARGETS = {"pykeen": 30, "hits@10": 0.42, "mrr": 0.26, "mpi 2 x 1": 0.85}
BATCHES = (256, 4096)
NEGATIVES = (1, 16)


def training_triples(scale: float) -> np.ndarray:
    """A share of the training triples of FB15k-237, or as many random ones."""
    file = DATA / "train2id.txt.gz"
    rng = np.random.default_rng(0)
    if file.exists():
        triples = read_triples(file)
    else:
        print("FB15k-237 is not there: random triples")
        sizes = ENTITIES, RELATIONS, ENTITIES
        triples = np.stack([(size * rng.random(TRIPLES) ** 2).astype(int) for size in sizes], 1)
    return np.unique(rng.permutation(triples)[: int(scale * len(triples))], axis=0)


def train(triples: np.ndarray, epochs: int, **parameters: Any) -> tuple[TransE, tuple[float, float]]:
    """Return the model, and triples a second, and a second of this process's CPU, in the epochs after the first."""
    cpu: list[float] = []
    model = TransE(50, max_iter=epochs, **parameters)
    sizes = {"entities": ENTITIES, "relations": RELATIONS}
    model.fit(triples, **sizes, on_iteration=lambda record: cpu.append(time.process_time()))
    seconds = [record["seconds"] for record in model.history_]
    count = len(triples) * (epochs - 1)
    return model, (count / (seconds[-1] - seconds[0]), count / (cpu[-1] - cpu[0]))


def speed(options: argparse.Namespace, data: str, triples: np.ndarray) -> None:
    """Triples a second on 2 threads and on 1, beside PyKEEN."""
    epochs = max(3, round(20 * options.scale))
    for negatives in NEGATIVES:
        print(f"  {negatives} negatives a triple")
        found: dict[str, list[tuple[float, float]]] = {}
        for _ in range(options.rounds):
            for threads in (1, 2):
                rates = train(triples, epochs, n_jobs=threads, n_negatives=negatives)[1]
                found.setdefault(f"strads, {threads} threads", []).append(rates)
            for batch in BATCHES if options.pykeen else ():
                rates = pykeen(options.pykeen, data, batch, negatives)
                found.setdefault(f"PyKEEN, batch {batch}", []).append(rates)
        compare(found)


def compare(found: dict[str, list[tuple[float, float]]]) -> None:
    """Print both sides' medians, and their ratio."""
    medians = {name: [statistics.median(of) for of in zip(*values, strict=True)] for name, values in found.items()}
    for name, (by_wall, by_cpu) in medians.items():
        print(f"  {name:22} {by_wall / 1e6:8.3f} M triples/s  {by_cpu / 1e6:8.3f} M a second of CPU")
    ours = medians["strads, 2 threads"]
    print(f"  2 threads / 1: {ours[0] / medians['strads, 1 threads'][0]:.2f}")
    of_peer = [values for name, values in medians.items() if name.startswith("PyKEEN")]
    if of_peer:
        ratios = [mine / max(theirs) for mine, theirs in zip(ours, zip(*of_peer, strict=True), strict=True)]
        target = f"(target ≥ {TARGETS['pykeen']})"
        print(f"  strads / PyKEEN's best batch: {ratios[0]:.0f} × {target}; by seconds of CPU {ratios[1]:.0f} ×")
    else:
        print("  PyKEEN is not there (--pykeen): its side is left out")


def pykeen(python: str, data: str, batch: int, negatives: int) -> tuple[float, float]:
    """Triples a second of PyKEEN, and a second of CPU."""
    script = str(Path(__file__).with_name("_transe_pykeen.py"))
    command = [python, script, data, "--batch", str(batch), "--negatives", str(negatives)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=bare())
    by_wall, by_cpu = json.loads(done.stdout.splitlines()[-1])
    return by_wall, by_cpu


def bare() -> dict[str, str]:
    """The environment without this interpreter's paths."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def quality(options: argparse.Namespace) -> None:
    """Ranks of the test triples, three seeds."""
    if not (DATA / "test2id.txt.gz").exists():
        print("  FB15k-237 is not there")
        return
    train_part, valid, test = (read_triples(DATA / f"{part}2id.txt.gz") for part in ("train", "valid", "test"))
    epochs = max(2, round(100 * options.scale))
    for seed in range(options.rounds):
        model, _ = train(train_part, epochs, random_state=seed)
        found = model.evaluate(test, [train_part, valid])
        print(
            f"  seed {seed}, {epochs} epochs, {model.history_[-1]['seconds']:.1f} s: filtered "
            f"hits@10 {found.filtered.hits_at_10:.4f} (target ≥ {TARGETS['hits@10']}), "
            f"MRR {found.filtered.mrr:.4f} (target ≥ {TARGETS['mrr']}); "
            f"raw hits@10 {found.raw.hits_at_10:.4f}, MRR {found.raw.mrr:.4f}",
            flush=True,
        )


def child(options: argparse.Namespace) -> None:
    """Run one variant in this process (of a job); the driver writes the result."""
    with started(options):
        model, (rate, _) = train(np.load(options.data)["triples"], options.epochs)
    bits = hashlib.sha256(model.entity_vectors_.tobytes() + model.relation_vectors_.tobytes()).hexdigest()
    sent = max(node["bytes_sent"] for node in model.history_[-1]["nodes"])
    finish(options, {"rate": rate, "bits": bits, "sent": sent})


def backends(options: argparse.Namespace, data: str) -> None:
    """Speed and bits of all variants."""
    epochs = max(7, round(40 * options.scale))
    found = run_variants(__file__, list(VARIANTS), options.rounds, ["--data", data, "--epochs", epochs])
    medians = {name: statistics.median(run["rate"] for run in runs) for name, runs in found.items()}
    bits = {run["bits"] for runs in found.values() for run in runs}
    for name, runs in found.items():
        target = f" (target ≥ {TARGETS[name]})" if name in TARGETS else ""
        print(
            f"  {name:14} {medians[name] / 1e6:6.2f} M triples/s  {medians[name] / medians[BASE]:.2f} × {BASE}{target}"
            f"; a node sends {runs[-1]['sent'] / 1e6:.1f} MB an epoch"
        )
    print(f"  different models: {len(bits)}; SHA-256 {sorted(bits)[0][:16]}…")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pykeen", help="a Python that has pykeen and torch")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", nargs="+", choices=["speed", "quality", "backends"])
    add_job_options(parser)
    parser.add_argument("--epochs", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.variant:
        child(options)
        return
    parts = options.parts or ["speed", "quality", "backends"]
    with tempfile.TemporaryDirectory() as folder:
        triples, data = training_triples(options.scale), os.path.join(folder, "triples.npz")
        np.savez(data, triples=triples, entities=ENTITIES, relations=RELATIONS)
        if "speed" in parts:
            print(f"{len(triples):,} triples, d = 50")
            strads.init("threads", threads=2)
            speed(options, data, triples)
        if "quality" in parts:
            print("accuracy on the test triples")
            quality(options)
        if "backends" in parts:
            print("backends (nodes x threads)")
            backends(options, data)


if __name__ == "__main__":
    main()
