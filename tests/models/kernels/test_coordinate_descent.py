"""Kernels of coordinate descent: the numbers of the paper's formulas, an objective that never rises, empty rows."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from strads.models.kernels.coordinate_descent import (
    FACTOR,
    STEP,
    add_products,
    item_step,
    rank_one_pass,
    squared_sum,
)
from strads.models.kernels.grouping import group_by_key


@dataclass
class Problem:
    """Ratings in any order, with the penalties of a row and of a rating, and factors to start from."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    scores: NDArray[np.float32]
    W: NDArray[np.float32]
    H: NDArray[np.float32]
    penalty: float
    penalty_a_rating: float

    def weights(self, ids: NDArray[np.int32], count: int) -> NDArray[np.float64]:
        return self.penalty + self.penalty_a_rating * np.bincount(ids, minlength=count)

    def objective(self, W: NDArray[np.floating], H: NDArray[np.floating]) -> float:
        W, H = W.astype(np.float64), H.astype(np.float64)
        errors = self.scores - (W[:, self.users] * H[:, self.items]).sum(0)
        penalties = self.weights(self.users, W.shape[1]) @ (W**2).sum(0)
        return float((errors**2).sum() + penalties + self.weights(self.items, H.shape[1]) @ (H**2).sum(0))


class Descent:
    """The kernels put together as they are meant to be: users in contiguous parts, one factor after the other."""

    def __init__(self, problem: Problem, workers: int):
        self.problem, self.W, self.H = problem, problem.W.copy(), problem.H.copy()
        n_users, n_items = self.W.shape[1], self.H.shape[1]
        self.offsets = np.zeros(n_users + 1, np.int64)
        self.items = np.empty(len(problem.items), np.int32)
        self.residuals = np.empty(len(problem.items), np.float32)
        group_by_key(problem.users, problem.items, problem.scores, self.offsets, self.items, self.residuals)
        self.residuals -= self.products()
        self.counts = np.bincount(problem.items, minlength=n_items)
        self.cuts = [n_users * worker // workers for worker in range(workers + 1)]
        self.table = np.zeros((n_items, 2), np.float32)
        self.table[:, FACTOR] = self.H[0]
        self.last = 0

    def products(self) -> NDArray[np.float32]:
        users = np.repeat(np.arange(self.W.shape[1]), np.diff(self.offsets))
        return (self.W[:, users] * self.H[:, self.items]).sum(0)

    def move(self, factor: int) -> float:
        """Minimize over a factor of the users, then of the items; returns what the latter says of the fall."""
        total = np.zeros_like(self.table, dtype=np.float64)
        penalties = np.float32(self.problem.penalty), np.float32(self.problem.penalty_a_rating)
        for first, end in zip(self.cuts[:-1], self.cuts[1:], strict=True):
            sums = np.zeros_like(self.table)
            offsets = self.offsets[first : end + 1]
            own, last = self.W[factor, first:end], self.W[self.last, first:end]
            longest = int(np.diff(offsets).max(initial=0))
            rank_one_pass(offsets, self.items, self.residuals, last, own, own, self.table, *penalties, sums, longest)
            total += sums
        self.last = factor
        following = self.H[(factor + 1) % len(self.H)]
        penalty, a_rating = self.problem.penalty, self.problem.penalty_a_rating
        return item_step(total, self.counts, penalty, a_rating, self.H[factor], following, self.table)


def reference(problem: Problem, sweeps: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Equation 3 as it stands, in double precision: factor by factor, all users, then all items."""
    W, H = problem.W.astype(np.float64), problem.H.astype(np.float64)
    sides = ((W, problem.users, H, problem.items), (H, problem.items, W, problem.users))
    for _ in range(sweeps):
        for k in range(len(W)):
            for moved, rows, fixed, others in sides:
                without = (
                    problem.scores - (moved[:, rows] * fixed[:, others]).sum(0) + moved[k, rows] * fixed[k, others]
                )
                count = moved.shape[1]
                over = np.bincount(rows, without * fixed[k, others], count)
                under = problem.weights(rows, count) + np.bincount(rows, fixed[k, others] ** 2, count)
                moved[k] = np.divide(over, under, out=moved[k].copy(), where=under > 1e-18)
    return W, H


@st.composite
def problems(draw: st.DrawFn, least_penalty: float = 0.0) -> Problem:
    n_users, n_items, rank = draw(st.integers(1, 40)), draw(st.integers(1, 12)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.integers(1, 300))
    penalties = [draw(st.floats(least_penalty, 2.0)), draw(st.sampled_from([0.0, 0.1]))]
    return Problem(
        rng.integers(n_users, size=count).astype(np.int32),
        rng.integers(n_items, size=count).astype(np.int32),
        (draw(st.sampled_from([0.01, 1.0, 100.0])) * rng.normal(0.5, 1, count)).astype(np.float32),
        rng.normal(0, 1, (rank, n_users)).astype(np.float32),
        rng.normal(0, 1, (rank, n_items)).astype(np.float32),
        *penalties,
    )


@given(problems(), st.integers(1, 5))
def test_the_objective_never_rises(problem, workers):
    descent = Descent(problem, workers)
    start = before = problem.objective(descent.W, descent.H)
    for _ in range(3):
        for factor in range(len(descent.W)):
            descent.move(factor)
            after = problem.objective(descent.W, descent.H)
            assert after <= before + 1e-5 * start
            before = after


@given(problems(least_penalty=0.1), st.integers(1, 5))
def test_factors_are_those_of_the_formula(problem, workers):
    descent = Descent(problem, workers)
    for _ in range(2):
        for factor in range(len(descent.W)):
            descent.move(factor)
    for ours, expected in zip((descent.W, descent.H), reference(problem, 2), strict=True):
        assert np.allclose(ours, expected, rtol=1e-3, atol=2e-3 * max(1.0, np.abs(expected).max()))


@given(problems(least_penalty=0.1))
def test_residuals_and_the_fall_of_their_squares(problem):
    descent = Descent(problem, 3)
    scale = float(np.abs(problem.scores).max()) + 30.0
    for factor in range(len(descent.W)):
        fall = descent.move(factor)
        before = float((descent.residuals.astype(np.float64) ** 2).sum())
        users = np.repeat(np.arange(descent.W.shape[1]), np.diff(descent.offsets))
        now = descent.residuals - descent.W[factor, users] * descent.table[descent.items, STEP]
        grouped = np.argsort(problem.users, kind="stable")
        assert np.array_equal(descent.items, problem.items[grouped])
        assert np.allclose(now, problem.scores[grouped] - descent.products(), atol=1e-5 * scale)
        after = float((now.astype(np.float64) ** 2).sum())
        assert abs(before - fall - after) <= 1e-5 * max(before, after) + 1e-9


@pytest.mark.parametrize("penalty", [0.0, 0.5])
@pytest.mark.parametrize("penalty_a_rating", [0.0, 0.5])
def test_rows_without_ratings_stay_finite(penalty, penalty_a_rating):
    W, H = np.zeros((2, 4), np.float32), np.ones((2, 5), np.float32)
    H[:, 3] = 0.0
    users, items = np.array([0, 0, 2], np.int32), np.array([0, 4, 4], np.int32)
    descent = Descent(Problem(users, items, np.ones(3, np.float32), W, H, penalty, penalty_a_rating), 2)
    for _ in range(5):
        for factor in range(2):
            descent.move(factor)
    assert not descent.W[:, [1, 3]].any()
    assert not descent.H[:, 3].any()
    assert np.isfinite(descent.W).all()
    assert np.isfinite(descent.H).all()
    assert descent.W[:, [0, 2]].any(axis=0).all()


def test_a_factor_that_all_but_vanished_does_not_overflow():
    W, H = np.zeros((1, 1), np.float32), np.full((1, 3), 1e-19, np.float32)
    items = np.arange(3, dtype=np.int32)
    descent = Descent(Problem(np.zeros(3, np.int32), items, np.full(3, 1e3, np.float32), W, H, 0.0, 0.0), 1)
    for _ in range(3):
        descent.move(0)
    assert np.isfinite(descent.W).all()
    assert np.isfinite(descent.H).all()
    assert np.isfinite(descent.residuals).all()


def test_predictions_and_their_squares():
    offsets, items = np.array([0, 2, 2, 3]), np.array([1, 0, 1], np.int32)
    predictions = np.array([1, 0, 0], np.float32)
    add_products(np.array([2, 7, 3], np.float32), offsets, items, np.array([5, -1], np.float32), predictions)
    assert predictions.tolist() == [-1, 10, -3]
    assert squared_sum(predictions) == 110
    assert squared_sum(np.full(2, 1e30, np.float32)) == pytest.approx(2e60)
