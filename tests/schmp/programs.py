"""Small SchMP programs for tests."""

import numpy as np

from strads import schmp


class Mixing(schmp.Program):
    """Every update mixes the worker's number, its data and its shards, so that any other order gives other numbers."""

    def __init__(self, workers, k=1, synchronizations=1):
        self.workers, self.k, self.synchronizations = workers, k, synchronizations
        self.state, self.aggregated = 1, []

    def schedule(self, iteration):
        return schmp.static_rotation(self.workers, self.k, synchronizations=self.synchronizations)

    def update(self, job, data, *shards):
        for shard in shards:
            shard[0] += 1
            shard[1] = (shard[1] * 31 + job.worker * 7 + data[0] + self.state) % 1_000_003
        data[0] = (data[0] * 17 + sum(int(shard[1]) for shard in shards)) % 1_000_003
        return int(data[0])

    def aggregate(self, results):
        self.aggregated.append(list(results))
        for result in results:
            self.state = (self.state * 13 + result) % 1_000_003

    @staticmethod
    def run(workers=4, k=1, synchronizations=1, iterations=3, threads=None):
        """Return shards, data and state after some iterations."""
        program = Mixing(workers, k, synchronizations)
        shards = [[np.array([0, 10 * number + shard]) for shard in range(workers)] for number in range(k)]
        data = [np.array([worker]) for worker in range(workers)]
        with schmp.StaticEngine(program, data, shards, threads=threads) as engine:
            for _ in range(iterations):
                engine.iterate()
            ends = [[shard.tolist() for shard in engine.shards(number)] for number in range(k)]
            return ends, [part.tolist() for part in engine.data()], engine.program.state


def replay(workers, k, synchronizations, iterations=3):
    """Run the same program by plain loops, round by round."""
    program = Mixing(workers, k, synchronizations)
    shards = [[np.array([0, 10 * number + shard]) for shard in range(workers)] for number in range(k)]
    data = [np.array([worker]) for worker in range(workers)]
    sums = [0] * workers
    for iteration in range(iterations):
        rounds = list(program.schedule(iteration))
        for number, each in enumerate(rounds):
            for job in each.jobs:
                found = [shards[parameter_set][shard] for parameter_set, shard in job.shard_keys()]
                sums[job.worker] += program.update(job, data[job.worker], *found)
            if each.synchronize or number + 1 == len(rounds):
                program.aggregate(sums)
                sums = [0] * workers
    return [[s.tolist() for s in of_set] for of_set in shards], [part.tolist() for part in data], program.state
