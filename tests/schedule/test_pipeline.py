"""The coordinator's pipeline under random timing: what is in flight, what is committed, and that it always ends."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strads.schedule.dynamic.pipeline import Aggregate, Command, Pipeline


class Simulation:
    """A coordinator and its nodes without threads or messages; what is in flight arrives in random order.

    Instance i proposes from its own parameters those that are not in flight, by priorities that follow from how often
    it has been told of their changes: so plans depend on when they are made.
    """

    def __init__(self, seed, plan_sizes, sources, depth, instances, subplans, reorder, own=40):
        self.order = random.Random(seed)
        self.sizes, self.sources, self.depth, self.subplans = plan_sizes, sources, depth, subplans
        self.own = own
        self.told = np.zeros((instances, own), int)
        self.in_flight = np.zeros((instances, own), bool)
        self.pipeline = Pipeline(len(plan_sizes), instances, sources, depth, subplans, reorder)
        self.on_the_way, self.commands, self.plans = [], [], {}
        self.dispatched, self.committed, self.aggregated = {}, [], []
        self.is_over = False

    def run(self):
        self.carry_out(self.pipeline.begin())
        while self.on_the_way:
            event, *content = self.on_the_way.pop(self.order.randrange(len(self.on_the_way)))
            self.carry_out(getattr(self.pipeline, event)(*content))
        assert self.is_over, "nothing is in flight, but the last command has not come"
        return self

    def carry_out(self, actions):
        waiting = list(actions)
        while waiting:
            action = waiting.pop(0)
            assert not self.is_over
            if isinstance(action, Aggregate):
                assert sorted(action.results) == [(action.number, source) for source in range(self.sources)]
                self.aggregated.append(action.number)
                waiting += self.pipeline.aggregated(action.parameters * 10)
            else:
                self.obey(action)

    def obey(self, command: Command):
        self.commands.append(
            (command.number, command.parameters.tolist(), [commit.number for commit in command.commits], command.pulls)
        )
        self.is_over = command.is_last
        for commit in command.commits:
            self.committed.append(commit.number)
            assert (commit.parameters == self.dispatched[commit.number]).all()
            assert (commit.changes == commit.parameters * 10).all()
            places = commit.parameters % self.own
            self.told[commit.instance, places] += 1
            self.in_flight[commit.instance, places] = False
        if len(command.parameters):
            seen = [number for number in self.dispatched if number <= command.number - self.depth]
            assert self.committed == seen, "an update sees the commits up to its number − depth, and no other"
            self.dispatched[command.number] = command.parameters
            assert len(self.dispatched) - len(self.aggregated) <= self.depth
            self.on_the_way += [("result_arrived", command.number, (command.number, s)) for s in range(self.sources)]
        for plan in command.pulls:
            self.propose(plan)

    def propose(self, plan):
        instance = plan % len(self.told)
        free = np.flatnonzero(~self.in_flight[instance])
        chosen = free[np.argsort(self.told[instance, free], kind="stable")][: self.sizes[plan]]
        self.in_flight[instance, chosen] = True
        parameters = (chosen + instance * self.own).astype(np.int64)
        self.plans[plan] = parameters
        self.on_the_way.append(("plan_arrived", plan, parameters, (parameters * 7 % 11).astype(float)))


shapes = st.fixed_dictionaries(
    {
        "plan_sizes": st.lists(st.integers(0, 12), max_size=25),
        "sources": st.integers(1, 3),
        "depth": st.integers(1, 5),
        "instances": st.integers(1, 5),
        "subplans": st.integers(1, 5),
        "reorder": st.booleans(),
        "own": st.integers(1, 30),
    }
)


@settings(max_examples=1500)
@given(shape=shapes, seed=st.integers(0, 2**32))
def test_every_subplan_is_dispatched_and_committed_once_in_order(shape, seed):
    done = Simulation(seed, **shape).run()
    assert done.committed == done.aggregated == list(done.dispatched)
    assert not done.in_flight.any()
    proposed = np.concatenate([done.plans[plan] for plan in sorted(done.plans)] or [[]])
    dispatched = np.concatenate(list(done.dispatched.values()) or [[]])
    assert sorted(proposed) == sorted(dispatched)
    assert done.pipeline.updates == len(dispatched)
    assert done.pipeline.plans == len(done.plans) <= len(shape["plan_sizes"])


@settings(max_examples=300)
@given(shape=shapes, seeds=st.tuples(st.integers(0, 2**32), st.integers(0, 2**32)))
def test_commands_do_not_depend_on_timing(shape, seeds):
    first, second = (Simulation(seed, **shape).run() for seed in seeds)
    assert first.commands == second.commands


def test_depth_one_commits_before_the_next_update():
    done = Simulation(0, [6] * 8, 2, 1, 2, 1, True).run()
    updates = [(number, commits) for number, parameters, commits, _ in done.commands if parameters]
    assert updates == [(0, []), *((number, [number - 1]) for number in range(1, 8))]


@pytest.mark.parametrize("instances", [1, 4, 6])
def test_an_instance_that_turns_last_is_told_of_all_it_has_proposed(instances):
    """Plans ahead of need cost no feedback where there are enough instances."""
    done = Simulation(3, [6] * 30, 2, 3, instances, 3, True)
    lacking = []
    propose = done.propose
    done.propose = lambda plan: (lacking.append(done.in_flight[plan % instances].sum()), propose(plan))
    done.run()
    assert sum(lacking) == 0 if instances > 1 else max(lacking) > 0


class TestOrderWithinAPlan:
    def subplans(self, reorder, subplans=3):
        pipeline = Pipeline(1, 1, 1, 10, subplans, reorder)
        pipeline.begin()
        priorities = np.array([5.0, 1.0, 9.0, 3.0, 7.0, 1.0, 8.0])
        actions = pipeline.plan_arrived(0, np.arange(7), priorities)
        return [action.parameters.tolist() for action in actions]

    def test_highest_priorities_first(self):
        assert self.subplans(True) == [[2, 6, 4], [0, 3], [1, 5]]

    def test_dealt_out_one_by_one(self):
        assert self.subplans(False) == [[0, 3, 6], [1, 4], [2, 5]]

    def test_never_more_subplans_than_parameters(self):
        assert self.subplans(True, 50) == [[2], [6], [4], [0], [3], [1], [5]]

    def test_the_first_of_a_plan_sees_the_first_of_the_plan_before(self):
        """Figure 5.3: with as many subplans as are in flight."""
        done = Simulation(1, [9] * 6, 1, 3, 3, 3, True).run()
        for number, _, commits, _ in done.commands[1:-1]:
            assert commits == ([number - 3] if number >= 3 else [])


def test_instances_with_nothing_left_end_the_run():
    done = Simulation(0, [0] * 1000, 1, 3, 2, 3, True).run()
    assert done.pipeline.updates == 0
    assert done.pipeline.plans < 10


def test_no_rounds_at_all():
    assert [command for command in Pipeline(0, 1, 1, 3, 3).begin() if command.is_last]
