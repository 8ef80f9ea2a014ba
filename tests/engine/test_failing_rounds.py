"""Compiled rounds in which a thread fails: the others do not wait for it."""

from contextlib import closing
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from launching import in_its_own_process
from numba import njit
from numba.extending import overload

from strads.cluster.thread_team import ThreadTeam
from strads.engine.dynamic import coordinate_rounds
from strads.engine.dynamic.coordinate_rounds import CoordinateRounds
from strads.schedule.dynamic.schedules import CyclicSchedule


class Fragile(NamedTuple):
    """A model that fails where it is told to."""

    place: Any  # of a parameter, of a thread that commits rows, of the commit of parameters
    changed: Any


def is_fragile(model):
    return getattr(model, "instance_class", None) is Fragile


@overload(coordinate_rounds.coordinate_change)
def _change(model, parameter):
    def change(model, parameter):
        if parameter == model.place[0]:
            raise ValueError("no change here")
        return 1.0

    return change if is_fragile(model) else None


@overload(coordinate_rounds.commit_rows)
def _commit_rows(model, parameters, changes, count, thread, threads):
    def commit(model, parameters, changes, count, thread, threads):
        if thread == model.place[1]:
            raise ValueError("no rows here")

    return commit if is_fragile(model) else None


@overload(coordinate_rounds.commit_parameters)
def _commit_parameters(model, parameters, changes, count):
    def commit(model, parameters, changes, count):
        if model.place[2] == 0:
            raise ValueError("no parameters here")
        for k in range(count):
            model.changed[parameters[k]] += changes[k]

    return commit if is_fragile(model) else None


# Not from the disk: what is kept there names the types of this file, which no other program knows.
kept_nowhere = njit(nogil=True)(coordinate_rounds.run_rounds.py_func)


def run(model, rounds, threads):
    with closing(ThreadTeam(threads)) as team, patch.object(coordinate_rounds, "run_rounds", kept_nowhere):
        return CoordinateRounds(CyclicSchedule(range(30), 6).state, model, team).run(rounds)


@in_its_own_process(60)
def test_a_thread_that_fails_lets_the_others_go():
    for threads in (1, 2, 3):
        model = Fragile(np.full(3, -1), np.zeros(30))
        assert run(model, 5, threads) == 30
        assert (model.changed == 1).all()
        for which, place, text in ((0, 0, "change"), (0, 13, "change"), (1, threads - 1, "rows"), (2, 0, "parameters")):
            model.place[:] = -1
            model.place[which] = place
            with pytest.raises(ValueError, match=f"no {text} here"):
                run(model, 1000, threads)
