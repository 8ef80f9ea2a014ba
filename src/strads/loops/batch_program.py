"""Compiled minibatch bodies: the analysis, the index check, and the loop of a thread."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numba import typeof

from strads.bodies.analysis import BodyAnalysis, TableKind
from strads.bodies.functions import plain_function
from strads.engine.minibatch.compiled_minibatches import Runner, make_runner, make_step, make_task
from strads.engine.minibatch.rounds import Rounds, SharedTable, make_rounds
from strads.engine.views.roles import Checking, Role
from strads.errors import ArgumentError, StradsError
from strads.loops.arguments import BatchArgument, BoundArguments, TableArgument
from strads.loops.indices import LoopIndices
from strads.loops.program import IndexChecks, LoopProgram
from strads.loops.python_mode import explain_failure


class BatchProgram(LoopProgram):
    """A minibatch body, compiled for one combination of argument types."""

    _chunk = 64  # minibatches recorded at a time by a thread: each has many rows
    _is_checkable: bool | None = None  # whether indices are checked before a run; None: not known yet

    def _facts(self, bound: BoundArguments, batch: TableKind | None = None) -> BodyAnalysis:
        batches = bound.arguments[-1]
        assert isinstance(batches, BatchArgument)
        facts = super()._facts(bound, batches.kind)
        for position in sorted(facts.written):
            _check_parameter(bound.tables[position])
        return replace(facts, near={}, weights={})  # workers have replicas: `near` draws from all rows

    def _task(self, body: Any) -> Any:
        return make_task(body)

    def explain(self, bound: BoundArguments, index: int) -> None:
        """Run a failed minibatch in the interpreter, to raise the error with its line."""
        function = plain_function(self.body)
        batches = bound.arguments[-1]
        assert isinstance(batches, BatchArgument)

        def task(number: int, *arguments: Any) -> None:
            function(batches[number], *arguments[:-1])

        explain_failure(task, bound, self.argument_roles.table_of, index)

    def live_roles(self, bound: BoundArguments, checking: Checking, *, in_loop_order: bool = False) -> tuple[Role, ...]:
        """Return the roles of the arguments in a run."""
        plain = {Role.CHECKED: Role.READ, Role.CHECKED_RELAXED: Role.RELAXED}  # the body itself is compiled with checks
        return tuple(plain.get(role, role) for role in self.argument_roles.roles)

    def part_checks(self, bound: BoundArguments, checking: Checking) -> IndexChecks:
        """Return which indices a run checks, of rows too, whose views do not check them."""
        if self._is_checkable is False or self.facts.unproved_tables:
            return IndexChecks(None, frozenset())
        return super().part_checks(bound, checking)

    def may_stop_half_way(self, bound: BoundArguments) -> bool:
        """Whether something that was not checked beforehand may stop a run."""
        return self._is_checkable is False or not self.is_certain(bound)

    def compile_check(self, bound: BoundArguments) -> bool:
        """Compile the index check before a run; False if each access of the run has to be checked instead.

        This is the case for a body that uses a table as a whole, as in `np.dot(w, x)`.
        """
        if self._is_checkable is None:
            try:
                self.compile_recorder(bound, LoopIndices.of(0))
                self._is_checkable = True
            except StradsError:
                if any(role.is_recorded for role in self.argument_roles.roles):
                    raise
                self._is_checkable = False
        return self._is_checkable

    def runner(self, bound: BoundArguments, storages: tuple[Any, ...]) -> Runner:
        """Compile the loop of a thread over minibatches; compiling again is free."""
        arguments = (np.zeros(0, np.int64), 0, 0, 0, np.zeros(1, np.int64), storages)
        runner: Runner = self._compiled(make_runner, bound, arguments)
        return runner

    def rounds(self, bound: BoundArguments, tables: tuple[SharedTable, ...], storages: tuple[Any, ...]) -> Rounds:
        """Compile the rounds of a thread, given the storages of all workers; compiling again is free."""
        flags = np.zeros(1, np.int64)
        arguments = (np.zeros((1, 0), np.int64), 0, 1, tables, flags, flags, storages)
        rounds: Rounds = self._compiled(make_rounds, bound, arguments)
        return rounds

    def _compiled(self, make: Callable[..., Any], bound: BoundArguments, arguments: tuple[Any, ...]) -> Any:
        """Raise `CompileError` for a body that cannot be compiled, with the offending line first."""
        return self._run_code(
            bound,
            lambda live, views, fastmath: make(make_step(live, views, fastmath)),
            lambda code: code.compile(tuple(map(typeof, arguments))),
            (make.__name__, len(arguments[-1])),
        )


def as_parameters(bound: BoundArguments, *, recorded: bool) -> BoundArguments:
    """Give workers replicas of written tables, as of relaxed ones; if `recorded`, record accesses to them instead."""
    as_replica = {
        position: replace(item, relaxed=not (recorded or item.ragged or item.record or item.table is None))
        for position, item in bound.tables.items()
    }
    return bound.exchanged(as_replica)


def _check_parameter(argument: TableArgument) -> None:
    if argument.ragged or argument.record or argument.storage.dtype.kind not in "iuf":
        kind = "ragged rows" if argument.ragged else "records" if argument.record else "bools"
        raise ArgumentError(
            f"the body writes {argument.name!r}, a table of {kind}: sync_for adds up the changes of replicas, so it "
            "needs rows of numbers"
        )
