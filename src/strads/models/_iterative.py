"""The base of estimators that learn iteration by iteration: the loop, its history, Ctrl-C, early stopping, files."""

import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, ClassVar, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from strads import cluster
from strads.cluster import ThreadTeam
from strads.engine.statistics import NodeStatistics
from strads.errors import ArgumentError, InputError, NodeFailure
from strads.models._patience import Patience
from strads.models._stopping import Stopping
from strads.models.model_files import load_model, plain, restored, save_model

IterationRecord = dict[str, Any]
OnIteration = Callable[[IterationRecord], object]


@dataclass(frozen=True)
class Epoch:
    """What a solver reports of one epoch.

    Attributes
    ----------
    samples
        Samples processed so far, in all epochs.
    objective
        The objective, if it is known without further work; training ends with an error when it is not finite.
    figures
        Further entries of the epoch's record.
    nodes
        Statistics of each node, if there are any.
    is_last
        Whether the solver has converged.
    """

    samples: int
    objective: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    nodes: Sequence[NodeStatistics] = ()
    is_last: bool = False


class Solver(ABC):
    """One training run, with its data and parameters, in this process or on nodes; a context manager."""

    @abstractmethod
    def run_epoch(self, number: int) -> Epoch:
        """Run an epoch; they are numbered from 1. Its time counts as training."""

    def evaluate(self, number: int) -> Mapping[str, float]:
        """Return figures of the record that are measured after an epoch; this time does not count as training."""
        return {}

    @abstractmethod
    def learnt(self) -> Any:
        """Return what was learnt so far, for `IterativeEstimator._publish`; early stopping needs it to have `copy()`.

        Called only when it is used: at the end, by methods of the estimator during `on_iteration`, and for the best
        epoch of early stopping. May be a view of the solver's own memory.
        """

    @property
    def is_intact(self) -> bool:
        """Whether `learnt` works after an epoch was broken off by an error or a second Ctrl-C."""
        return True

    def close(self) -> None:  # noqa: B027 – not every solver has something to release
        """Release everything on the nodes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class IterativeEstimator(BaseEstimator, ABC):
    """An estimator that learns iteration by iteration.

    A subclass writes

    - `fit`, which checks its input, calls `_forget`, and passes a `Solver`, in a `with` statement, to `_train`;
    - `_publish`, which makes what the solver has learnt attributes;
    - `_saved` and `_restore`, what model files hold besides the parameters and the history.

    Public methods begin with `_check_fitted()`, and so do properties that compute an attribute from others. During
    `on_iteration` they then use what was learnt so far, which is copied from the nodes only in this case.

    Attributes
    ----------
    history_ : list of dict
        One record per iteration: `iteration`, from 1; `seconds` of training so far; `samples` so far; the figures of
        `Epoch` and `Solver.evaluate`; `nodes`, a dict of the fields of `NodeStatistics` for each node.
    n_iter_ : int
        Number of iterations.
    """

    max_iter: int
    n_jobs: int | None = None
    history_: list[IterationRecord]
    n_iter_: int

    _parameter_classes: ClassVar[tuple[type, ...]] = ()  # dataclasses that a parameter may be an instance of
    _early_stopping_figure: ClassVar[str]  # key of the record that `early_stopping` watches
    _higher_is_better: ClassVar[bool] = False

    _solver: Solver | None = None  # during training
    _is_current = False  # whether the attributes are those of the solver's last epoch
    _is_fitted = False

    @abstractmethod
    def _publish(self, learnt: Any) -> None:
        """Make what `Solver.learnt` returned attributes, copied to this process."""

    @abstractmethod
    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what a model file holds: numbers and texts (as JSON can represent them), and arrays (not of objects).

        The constructor's parameters, the history and `n_iter_` are saved as well.
        """

    @abstractmethod
    def _restore(self, parameters: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Set all attributes from what `_saved` returned.

        Raises
        ------
        KeyError, TypeError, ValueError, IndexError, ArgumentError
            If something is missing or does not fit together.
        """

    # -- training ------------------------------------------------------------------------------------------

    def _forget(self, *names: str) -> None:
        """Discard the results of an earlier fit, and attributes of these names."""
        self._is_fitted = False
        for name in names:
            self.__dict__.pop(name, None)

    def _train(
        self,
        solver: Solver,
        on_iteration: OnIteration | None = None,
        *,
        seconds: float = 0.0,
        max_epochs: int | None = None,
    ) -> bool:
        """Run epochs until `max_iter`, convergence, early stopping, a callback that returns True, or Ctrl-C; publish.

        Ctrl-C, and errors of the callback, take effect when the model is published. With the parameter
        `early_stopping` (and `tol`, `n_iter_no_change`) the model is that of the best epoch.

        Parameters
        ----------
        solver : Solver
            The caller closes it.
        on_iteration
            Called with each record.
        seconds
            Time of training before the first epoch.
        max_epochs
            Largest number of epochs, if that is not `max_iter`.

        Returns
        -------
        bool
            Whether the callback ended training.

        Raises
        ------
        NodeFailure
            If a node is lost; with it what was learnt, so the estimator is not fitted.
        """
        self.history_, self.n_iter_ = [], 0
        self._forget()
        self._solver = solver
        best: list[Any] = []
        try:
            with Stopping() as stopping:
                try:
                    self._iterate(solver, stopping, on_iteration, seconds, max_epochs or int(self.max_iter), best)
                except NodeFailure:
                    raise
                except BaseException:
                    if best or solver.is_intact:
                        self._take_over(*best or [solver.learnt()])
                    raise
                self._take_over(*best or [solver.learnt()])
        finally:
            del self._solver
        return stopping.is_wanted

    def _iterate(
        self,
        solver: Solver,
        stopping: Stopping,
        on_iteration: OnIteration | None,
        seconds: float,
        max_epochs: int,
        best: list[Any],
    ) -> None:
        """Run the epochs; `best` receives the model to keep, if it is not the last one."""
        patience = self._patience()
        for number in range(1, max_epochs + 1):
            begin = time.perf_counter()
            epoch = solver.run_epoch(number)
            seconds += time.perf_counter() - begin
            record = self._record(number, seconds, epoch, solver)
            self._is_current = False
            if patience is not None:
                value = record[self._early_stopping_figure]
                if patience.see(-value if self._higher_is_better else value):
                    best[:] = [solver.learnt().copy()]
            wants_to_stop = stopping.look(record, on_iteration)
            if wants_to_stop or epoch.is_last or (patience is not None and patience.is_over):
                break

    def _patience(self) -> Patience | None:
        """Early stopping, if the estimator has such a parameter and it is set."""
        if not getattr(self, "early_stopping", False):
            return None
        parameters = self.get_params(deep=False)
        return Patience(parameters["tol"], parameters["n_iter_no_change"])

    def _record(self, number: int, seconds: float, epoch: Epoch, solver: Solver) -> IterationRecord:
        """Add an epoch to the history."""
        record: IterationRecord = {"iteration": number, "seconds": seconds, "samples": epoch.samples}
        if epoch.objective is not None:
            if not math.isfinite(epoch.objective):
                raise InputError(f"training diverged in epoch {number}: {self._advice_on_divergence()}")
            record["objective"] = epoch.objective
        record |= epoch.figures
        record |= solver.evaluate(number)
        if epoch.nodes:
            record["nodes"] = [asdict(node) for node in epoch.nodes]
        self.history_.append(record)
        self.n_iter_ = number
        return record

    def _advice_on_divergence(self) -> str:
        return "use a smaller learning_rate"

    def _take_over(self, learnt: Any) -> None:
        self._publish(learnt)
        self._is_fitted = self._is_current = True

    # -- use -----------------------------------------------------------------------------------------------

    def _check_fitted(self) -> None:
        """Raise an error unless there is something learnt; during `on_iteration`, publish it first."""
        if self._solver is not None and self.history_ and not self._is_current:
            self._take_over(self._solver.learnt())
        if not self._is_fitted:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_fitted

    @property
    def _threads(self) -> int | None:
        """Threads of `n_jobs` on a single process; None: those of `strads.init`, which several nodes always use."""
        if not cluster.current().is_local:
            return None
        return cluster.available_cores() if self.n_jobs == -1 else self.n_jobs

    def _team(self) -> ThreadTeam:
        """The threads of this process, for prediction."""
        return cluster.current().team(cluster.available_cores() if self.n_jobs == -1 else self.n_jobs)

    # -- files ---------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file (NumPy's `.npz`, no pickle), which `load` of its class reads.

        May be called in `on_iteration`: then it saves what was learnt so far.
        """
        self._check_fitted()
        parameters, arrays = self._saved()
        shared = {"params": plain(self.get_params()), "n_iter": self.n_iter_, "history": self.history_}
        if hasattr(self, "feature_names_in_"):
            arrays["feature_names_in"] = self.feature_names_in_.astype(str)
        save_model(path, type(self).__name__, shared | parameters, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote.

        Raises
        ------
        InputError
            If the file is missing, corrupt, or holds another kind of model.
        """
        parameters, arrays = load_model(path, cls.__name__)
        try:
            model = cls(**restored(parameters["params"], cls._parameter_classes))
            model.n_iter_, model.history_ = int(parameters["n_iter"]), list(parameters["history"])
            model._restore(parameters, arrays)
            if "feature_names_in" in arrays:
                model.feature_names_in_ = arrays["feature_names_in"].astype(object)
        except (KeyError, TypeError, ValueError, IndexError, ArgumentError) as error:
            raise InputError(f"{os.fspath(path)}: the model file is incomplete ({error})") from error
        model._is_fitted = True
        return model
