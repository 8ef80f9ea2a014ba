"""BLAS has one thread while a model is fitted, and its own number afterwards, whichever threads fit."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from strads.models import Lasso
from strads.models._blas_threads import one_blas_thread


def threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def several_threads():
    with one_blas_thread():  # loads BLAS
        pass
    with threadpool_limits(3, user_api="blas"):
        yield


def test_the_limit_lasts_until_the_last_context_ends():
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert threads() == {1}
    second.__exit__(None, None, None)
    assert threads() == {3}


def test_contexts_of_threads_that_stay_alive():
    """One thread sets the limit, another one ends it: threadpoolctl heeds one thread only."""
    contexts = [one_blas_thread(), one_blas_thread()]
    with ThreadPoolExecutor(1) as a, ThreadPoolExecutor(1) as b:
        for pool, context in zip((a, b), contexts, strict=True):
            pool.submit(context.__enter__).result()
            assert threads() == {1}
        a.submit(contexts[0].__exit__, None, None, None).result()
        assert threads() == {1}
        b.submit(contexts[1].__exit__, None, None, None).result()
        assert threads() == {3}


def test_nobody_lifts_the_limit_meanwhile():
    with ThreadPoolExecutor(1) as pool, one_blas_thread():
        pool.submit(threadpool_limits, 2, user_api="blas").result()
        assert threads() == {1}


def test_fits_in_a_pool_leave_blas_as_it_was():
    X = np.random.default_rng(0).normal(size=(500, 10))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda seed: Lasso(0.01).fit(X, X[:, 0]), range(10)))
        assert threads() == {3}
    assert threads() == {3}
    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}  # nobody is locked out
