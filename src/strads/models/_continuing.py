"""The base of estimators that can continue learning: from another model, or batch by batch."""

import hashlib
import json
import math
from abc import ABC
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np

from strads import cluster
from strads.cluster.critical_sections import interrupts_deferred
from strads.errors import ArgumentError, InputError
from strads.models._file_contents import Number
from strads.models._iterative import IterativeEstimator
from strads.models._parameters import recorded_seed
from strads.models.model_files import plain
from strads.rng.philox import mixed_key

_MAX_RECORDS = 1000  # latest ones that `history_` keeps
CALLS = Number(whole=True, least=1)  # of what model files hold
SEED = Number(whole=True, least=0)
_CALL = 0xCA11  # purpose of random numbers


class ContinuedEstimator(IterativeEstimator, ABC):
    """An estimator with `partial_fit(batch)` and `fit(X, init=model)`: what a model learns next is a function of the
    model, the parameters and the data alone, so that models that are fed the same batches agree bit by bit.

    A subclass calls `_origin` before anything changes, draws random numbers with `_call_seed(origin)`, calls
    `_begin_call` before a model is published, makes changes of a `partial_fit` in `_changing`, and saves and restores
    `_saved_call`.
    """

    _must_agree: ClassVar[tuple[str, ...]] = ()  # parameters that decide what the tables hold
    random_state: int | np.random.RandomState | None  # the seed, or what draws it; None: NumPy's global generator

    _calls = 0  # calls of `fit` and `partial_fit` that the model stems from
    _made_with: dict[str, Any]  # values of these parameters in those calls

    def _origin(self, init: Any) -> Self | None:
        """Return the model to continue from, or None for a fresh start.

        Raises
        ------
        ArgumentError
            If it is no fitted model of this class, or was fitted with other parameters.
        """
        if self._training is not None:
            raise ArgumentError("the model is being fitted: it cannot be fitted again in on_iteration")
        if init is None:
            return None
        if type(init) is not type(self):
            raise ArgumentError(f"init is a {type(init).__name__}: give a fitted {type(self).__name__}")
        if not init._is_fitted:
            raise ArgumentError("init is not fitted: call its fit, or load a saved model")
        for name in self._must_agree:
            wanted, found = (json.dumps(plain({name: value})) for value in (getattr(self, name), init._made_with[name]))
            if wanted != found:
                raise ArgumentError(f"the model to continue from has other parameters: {found}, not {wanted}")
        return init

    def _call_seed(self, origin: Self | None) -> int:
        """Return the seed of a call: `random_state`, or, for one that continues, a number unrelated to earlier ones."""
        seed = recorded_seed(self.random_state)
        if origin is None:
            return seed
        return int(mixed_key(np.uint64(seed), np.uint64(_CALL), np.uint64(origin._calls))) >> 1  # below 2⁶³

    def _begin_call(self, origin: Self | None) -> None:
        """Count the call, and note its parameters."""
        self._calls = 1 + (0 if origin is None else origin._calls)
        self._made_with = plain({name: getattr(self, name) for name in self._must_agree})

    def _saved_call(self) -> dict[str, Any]:
        """Return what a model file holds of the calls."""
        return {"calls": self._calls, "made_with": self._made_with}

    def _restore_call(self, parameters: dict[str, Any]) -> None:
        """Set what `_saved_call` returned."""
        self._calls, self._made_with = int(parameters["calls"]), dict(parameters["made_with"])
        if set(self._made_with) != set(self._must_agree):
            raise ValueError("made_with is not that of this model")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Context in which a `partial_fit` changes the model: Ctrl-C is deferred, and the model stays fitted."""
        with interrupts_deferred(cluster.current().cluster):
            if not self._is_fitted:
                self.history_, self._iterations = [], 0
            yield
            self._is_fitted = True

    def _add_record(self, seconds: float, samples: int, **figures: float) -> None:
        """Add a batch to the history, counting on from the last record; of a long history the last records are kept."""
        last = self.history_[-1] if self.history_ else {"seconds": 0.0, "samples": 0}
        self._iterations += 1
        record = {
            "iteration": self._iterations,
            "seconds": last["seconds"] + seconds,
            "samples": last["samples"] + samples,
        }
        self.history_.append(record | figures)
        del self.history_[:-_MAX_RECORDS]

    def _check_finite(self, *values: Any) -> None:
        """Reject the result of a batch if it is not finite; the model has not changed yet."""
        if not all(math.isfinite(np.sum(value, dtype=np.float64)) for value in values):
            raise InputError(
                f"training diverged on this batch, which has changed nothing: {self._advice_on_divergence()}"
            )

    def digest(self) -> str:
        """Return a SHA-256 of everything that determines what the model predicts and how it continues to learn.

        Models that are equal bit by bit have equal digests, on any number of threads and nodes, so that replicas which
        are fed the same batches can be compared. The history, `n_jobs` and `verbose` are not part of it.
        """
        self._check_fitted()
        found, arrays = self._saved()
        parameters = plain(
            {name: value for name, value in self.get_params().items() if name not in self._without_effect}
        )
        header = [type(self).__name__, self._iterations, parameters, found]
        total = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
        for name, array in sorted(arrays.items()):
            total.update(f"{name} {array.dtype.str} {array.shape}".encode())
            total.update(np.ascontiguousarray(array).data)
        return total.hexdigest()
