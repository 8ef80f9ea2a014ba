"""The base of estimators that learn iteration by iteration: the loop, its history, Ctrl-C, early stopping, files."""

import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from strads import cluster
from strads.checkpoints import Data, Load, Operator, Save, Tree, current_session, forget, observe, perform
from strads.cluster import ThreadTeam
from strads.engine.statistics import NodeStatistics
from strads.errors import ArgumentError, InputError, NodeFailure
from strads.models._file_contents import Contents, Number, Table, check_contents
from strads.models._parameters import check_n_jobs, check_seed, check_verbose
from strads.models._stopping import Patience, Stopping
from strads.models.model_files import load_model, plain, restored, save_model
from strads.progress import Shown, showing
from strads.schmp import StaticEngine

IterationRecord = dict[str, Any]
OnIteration = Callable[[IterationRecord], object]

_ITERATIONS = Number(whole=True, least=0)
_NAMES = {"feature_names_in": Table(dtypes="U", shape=("features",), optional=True)}


@dataclass(frozen=True)
class Epoch:
    """What a solver reports of one epoch."""

    samples: int  # processed so far, in all epochs
    objective: float | None = None  # if known without further work; training fails when it is not finite
    figures: Mapping[str, float] = field(default_factory=dict)  # further entries of the record
    nodes: Sequence[NodeStatistics] = ()  # statistics of each, if there are any
    is_last: bool = False  # whether the solver has converged


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

    def verdict(self) -> Mapping[str, Any]:
        """Return what the estimator needs to know about the end of training, such as whether it converged."""
        return {}

    def close(self) -> None:  # noqa: B027 – not every solver has something to release
        """Release everything on the nodes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class EngineSolver(Solver):
    """A training run whose data and parameters are those of an engine."""

    checkpointed: ClassVar[tuple[str, ...]] = ("_engine",)  # names of the attributes that checkpoints save
    _engine: StaticEngine

    @property
    def is_intact(self) -> bool:
        """Whether all nodes have finished the last epoch."""
        return self._engine.is_intact

    def close(self) -> None:
        """Release everything on the nodes."""
        self._engine.close()


class _Training:
    """What changes while an estimator learns: saved and restored by checkpoints."""

    def __init__(self, solver: Solver, patience: Patience | None):
        self.solver = solver  # its attributes are saved, or those that its class names in `checkpointed`
        self.patience = patience  # of early stopping
        self.best: list[Any] = []  # the best model so far, if that is not the last one
        self.is_closed = False  # whether training has ended

    def checkpoint_state(self, save: Save) -> Tree:
        """Return the state."""
        return [save(self.solver), save(self.patience), save(self.best)]

    def restore_state(self, tree: Tree, load: Load) -> None:
        """Restore the state."""
        solver, patience, best = tree
        load(solver, self.solver)
        self.patience = load(patience, self.patience)
        # The best model is of the same classes as the current one.
        self.best = load(best, [self.solver.learnt().copy()] if self.patience is not None else [])


class IterativeEstimator(BaseEstimator, ABC):
    """An estimator that learns iteration by iteration.

    A subclass is a dataclass, whose fields are its parameters (`eq` and `repr` are those of scikit-learn), and writes

    - `fit`, which checks its input, calls `_forget`, and passes a `Solver`, in a `with` statement, to `_train`;
    - `_publish`, which makes what the solver has learnt attributes;
    - `_saved` and `_restore`, what model files hold besides the parameters and the history.

    Public methods begin with `_check_fitted()`, and so do properties that compute an attribute from others. During
    `on_iteration` they then use what was learnt so far, which is copied from the nodes only in this case.

    Attributes
    ----------
    max_iter : int
        Largest number of iterations; a property where the parameter has another name.
    n_jobs : int or None
        Threads of this process; None: those of `strads.init`; -1: all cores.
    verbose : bool
        Whether to show progress.
    history_ : list of dict
        One record per iteration: `iteration`, from 1; `seconds` of training so far; `samples` so far; the figures of
        `Epoch` and `Solver.evaluate`; `nodes`, a dict of the fields of `NodeStatistics` for each node.
    n_iter_ : int
        Number of iterations.
    shown : Shown
        What a progress display shows of each record.
    """

    max_iter: int
    n_jobs: int | None = None
    verbose: bool = False
    history_: list[IterationRecord]
    _iterations: int

    shown: ClassVar[Shown] = Shown()

    _contents: ClassVar[Contents] = {}  # what a model file must hold of the entries of `_saved`
    _parameter_classes: ClassVar[tuple[type, ...]] = ()  # dataclasses that a parameter may be an instance of
    _early_stopping_figure: ClassVar[str]  # key of the record that `early_stopping` watches

    # Parameters that no epoch's result depends on.
    _without_effect: ClassVar[tuple[str, ...]] = ("n_jobs", "verbose")

    _not_in_files: ClassVar[tuple[str, ...]] = ()  # attributes that only checkpoints hold

    is_result: ClassVar[bool] = True  # for checkpoints: operators make it, and do not read it

    _training: _Training | None = None  # during training
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

    def _check_parameters(self) -> Any:
        """Raise ArgumentError for parameters that cannot be used; `fit` does so, and `load`."""
        check_n_jobs(self.n_jobs)
        check_verbose(self)
        if hasattr(self, "random_state"):
            check_seed(self)

    @abstractmethod
    def _restore(self, parameters: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Set all attributes from what `_saved` returned; those of a file have been checked as `_contents` declares.

        Raises
        ------
        KeyError, TypeError, ValueError, IndexError, ArgumentError
            If something is missing or does not fit together.
        """

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
        data: Data | None = None,
    ) -> bool:
        """Run epochs until `max_iter`, convergence, early stopping, a callback that returns True, or Ctrl-C; publish.

        Ctrl-C, and errors of the callback, take effect when the model is published. With the parameter
        `early_stopping` (and `tol`, `n_iter_no_change`) the model is that of the best epoch. The caller closes the
        solver. `seconds` were spent before the first epoch; `max_epochs` replaces `max_iter`; checkpoints compare
        `data`. Returns whether the callback ended training.

        Raises
        ------
        NodeFailure
            If a node is lost; with it what was learnt, so the estimator is not fitted.
        """
        if on_iteration is not None and not callable(on_iteration):
            raise ArgumentError(f"on_iteration={on_iteration!r:.60}: give a function of one argument, the record")
        self.history_, self._iterations = [], 0
        self._forget()
        session = current_session()
        self._training = training = _Training(solver, self._patience())
        self._verdict: dict[str, Any] = {}
        most = max_epochs or int(self.max_iter)
        try:
            with ExitStack() as display, Stopping() as stopping:
                if self.verbose:
                    on_iteration = display.enter_context(showing(self.shown, most, on_iteration))
                try:
                    reason = self._iterate(training, stopping, on_iteration, seconds, most, data)
                except BaseException as error:
                    self._forget()  # what methods used in `on_iteration` may be of an earlier epoch
                    if not isinstance(error, NodeFailure) and (training.best or solver.is_intact):
                        self._take_over(training)
                    raise
                if stopping.error is not None and session is not None:
                    session.suspend()
                self._end(training, reason)
        finally:
            training.is_closed = True
            del self._training
        return stopping.is_wanted

    def _iterate(
        self,
        training: _Training,
        stopping: Stopping,
        on_iteration: OnIteration | None,
        seconds: float,
        max_epochs: int,
        data: Data | None,
    ) -> tuple[object, ...]:
        """Run the epochs, each an operator of checkpoints; returns why they ended."""
        session = current_session()
        chosen = plain(self.get_params()) if session is not None else {}
        for name in self._without_effect:
            chosen.pop(name, None)
        for number in range(1, max_epochs + 1):
            if session is not None and session.next_name() == self._name_of("end"):
                break  # the earlier run was stopped here, if its reason is the same
            seconds, record, is_last = perform(
                Operator(
                    self._name_of("epoch"),
                    partial(self._run_epoch, training, number, seconds),
                    lambda number=number: (number, chosen, data and data.digest),  # type: ignore[misc]
                    [training],
                    data=data,
                )
            )
            self.history_.append(record)
            self._iterations = number
            self._is_current = False
            if stopping.look(record, on_iteration) or is_last:
                break
        else:
            return "max_iter", max_epochs
        return ("stopped",)

    def _name_of(self, part: str) -> str:
        return f"{type(self).__name__} {part}"

    def _run_epoch(self, training: _Training, number: int, seconds: float) -> tuple[float, IterationRecord, bool]:
        """Run an epoch; returns the seconds so far, its record, and whether it is the last one."""
        solver, patience = training.solver, training.patience
        begin = time.perf_counter()
        epoch = solver.run_epoch(number)
        seconds += time.perf_counter() - begin
        record: IterationRecord = {"iteration": number, "seconds": seconds, "samples": epoch.samples}
        if epoch.objective is not None:
            if not math.isfinite(epoch.objective):
                raise InputError(f"training diverged in epoch {number}: {self._advice_on_divergence()}")
            record["objective"] = epoch.objective
        record |= epoch.figures
        record |= solver.evaluate(number)
        if epoch.nodes:
            record["nodes"] = [asdict(node) for node in epoch.nodes]
        if patience is not None and patience.see(record[self._early_stopping_figure]):
            training.best = [solver.learnt().copy()]
        return seconds, record, epoch.is_last or (patience is not None and patience.is_over)

    def _end(self, training: _Training, reason: tuple[object, ...]) -> None:
        """Publish what was learnt: the last operator of training."""

        def run() -> dict[str, Any]:
            self._take_over(training)
            return dict(training.solver.verdict())

        self._verdict = perform(Operator(self._name_of("end"), run, lambda: reason, [self, training]))
        observe(self)
        forget(training)
        self._is_fitted = self._is_current = True

    def _patience(self) -> Patience | None:
        """Early stopping, if the estimator has such a parameter and it is set."""
        if not getattr(self, "early_stopping", False):
            return None
        parameters = self.get_params(deep=False)
        return Patience(parameters["tol"], parameters["n_iter_no_change"])

    def _advice_on_divergence(self) -> str:
        return "use a smaller learning_rate"

    def _take_over(self, training: _Training) -> None:
        observe(training)
        self._publish(*training.best or [training.solver.learnt()])
        self._is_fitted = self._is_current = True

    def _check_fitted(self) -> None:
        """Raise an error unless there is something learnt; during `on_iteration`, publish it first."""
        if self._training is not None and self.history_ and not self._is_current:
            observe(self._training)
            self._publish(self._training.solver.learnt())
            self._is_fitted = self._is_current = True
        if not self._is_fitted:
            check_is_fitted(self)

    @property
    def n_iter_(self) -> Any:
        """Number of iterations."""
        return self._iterations

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

    def checkpoint_state(self, save: Save) -> Tree:
        """Return what was learnt as a tree."""
        if not self._is_fitted:
            return None
        more = {name: getattr(self, name) for name in self._not_in_files if hasattr(self, name)}
        return save([*self._saved(), self._iterations, more])

    def restore_state(self, tree: Tree, load: Load) -> None:
        """Restore what was learnt."""
        self._is_fitted = self._is_current = tree is not None
        if tree is not None:
            *saved, self._iterations, more = load(tree)
            self._restore(*saved)
            self.__dict__.update(more)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file (NumPy's `.npz`, no pickle), which `load` of its class reads.

        May be called in `on_iteration`: then it saves what was learnt so far.
        """
        self._check_fitted()
        parameters, arrays = self._saved()
        shared = {"params": plain(self.get_params()), "n_iter": self._iterations, "history": self.history_}
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
            check_contents({"n_iter": _ITERATIONS} | dict(cls._contents) | _NAMES, parameters, arrays)
            model = cls(**restored(parameters["params"], cls._parameter_classes))
            model._check_parameters()
            model._iterations, model.history_ = parameters["n_iter"], _checked_history(parameters["history"])
            model._restore(parameters, arrays)
            if "feature_names_in" in arrays:
                model.feature_names_in_ = arrays["feature_names_in"].astype(object)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise InputError(f"{os.fspath(path)}: the model file is incomplete or damaged ({error})") from error
        model._is_fitted = True
        return model


def _checked_history(found: Any) -> list[IterationRecord]:
    """Return the records of a file, or raise ValueError."""
    counts = {"iteration": _ITERATIONS, "samples": _ITERATIONS, "seconds": Number(least=0)}
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise ValueError("history is no list of records")
    for record in found:
        check_contents(counts, record, {})
    return found
