"""A loop body compiled for one combination of argument types: its analysis, its recorder and its worker."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from strads.bodies.analysis import BodyAnalysis, TableKind, analyse_body
from strads.bodies.analysis.facts import CheckedIndex
from strads.bodies.analysis.inlining import Variable
from strads.bodies.analysis.values import Given
from strads.bodies.code_cache import keep_on_disk
from strads.bodies.compile_errors import explain
from strads.bodies.functions import compile_function, fingerprint, plain_function
from strads.engine.plans.executor import ExecutablePlan, Task, Worker, compile_worker, make_worker
from strads.engine.views.kinds import MAX_AXES
from strads.engine.views.live import live_view
from strads.engine.views.prefetching_views import fetching_view
from strads.engine.views.roles import Checking, Role
from strads.errors import ArgumentError
from strads.loops.argument_roles import ArgumentRoles
from strads.loops.arguments import BoundArguments, TableArgument
from strads.loops.compile_clock import COMPILE_CLOCK
from strads.loops.indices import LoopIndices
from strads.loops.python_mode import explain_failure
from strads.loops.recorder import CHUNK, Recorder

_programs: dict[tuple[Any, ...], "LoopProgram"] = {}
_MAX_PROGRAMS = 64
_COPIED_AT_ONCE = 1 << 20  # bytes, in less than 0.1 ms
_LONG_ROW = 64  # bytes: working on such a row takes longer than checking its index
_FEW = 8  # numbers that are not worth vectorizing a sum
NEGLIGIBLE_COPY = 64  # bytes: copying as many takes little time beside a task

# The flags needed to vectorize sums. The rest of LLVM's fast math assumes that NaN and infinity never occur, so
# that `math.isnan` in a body would always be False.
_REORDERING = {"reassoc", "contract", "arcp", "nsz", "afn"}

_RECORDED: Any = {"error_model": "numpy", "boundscheck": True}  # how bodies are compiled for reconnaissance

Program = TypeVar("Program", bound="LoopProgram")


class Variant(Enum):
    """Another way to record a loop and to check its runs."""

    OUTCOMES = auto()  # reconnaissance chooses the outcomes of undecided branches
    GUARDS = auto()  # sums that choose rows may be reordered: runs check these rows
    VARYING = auto()  # reconnaissance also chooses the outcomes of branches on data that vary from call to call


class IndexChecks(NamedTuple):
    """The indices within rows and local arrays that a run checks."""

    variables: frozenset[Variable] | None  # of the source that are such indices; None: all indices are checked
    tables: frozenset[int]  # arguments T of which it checks the indices after the first of T[i, j]

    @classmethod
    def of(cls, indices: Collection[CheckedIndex]) -> "IndexChecks":
        """Return the checks of some indices."""
        variables = [index.variable for index in indices if index.variable is not None]
        tables = frozenset(index.table for index in indices if index.table is not None)
        return cls(frozenset(variables) if len(variables) == len(indices) else None, tables)

    def __bool__(self) -> bool:
        return self.variables is None or bool(self.variables)

    def within(self, position: int) -> bool:
        """Whether the indices after the first of T[i, j] are checked for the argument at a position."""
        return self.variables is None or position in self.tables


class LoopProgram:
    """Everything that is compiled for a body; tables and plans come with each call."""

    _chunk = CHUNK  # tasks that a thread records at a time

    def __init__(
        self,
        body: Callable[..., Any],
        bound: BoundArguments,
        *,
        fastmath: bool,
        facts: BodyAnalysis | None = None,
        variant: Variant | None = None,
        by_element: bool = False,
    ):
        self.body = body
        self.variant = variant
        self._fingerprint = fingerprint(body)
        with COMPILE_CLOCK.running():
            self.facts = facts or self._analyse(bound)  # what the analysis has found out about the body
        self._may_reorder = fastmath
        self.argument_roles = ArgumentRoles.of(bound, self.facts, by_element=by_element)  # roles of the arguments
        self._recorders: dict[bool, Recorder] = {}
        self._codes: dict[tuple[Any, ...], Any] = {}
        self._always_checked: dict[Checking, dict[int, frozenset[Variable]]] = {}  # where no size decides it
        self._roles: dict[tuple[Checking, frozenset[int], bool], tuple[Role, ...]] = {}
        self._live_bodies: dict[tuple[frozenset[Variable] | None, bool, frozenset[Variable]], Any] = {}
        self._variants: dict[Variant, LoopProgram] = {}
        self._by_element: LoopProgram | None = None

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Convert errors of compiling: Numba raises many kinds, not all of them its own."""
        try:
            yield
        except Exception as error:
            raise explain(error, plain_function(self.body)) from error

    def _analyse(self, bound: BoundArguments) -> BodyAnalysis:
        with self._explaining():
            facts = self._facts(bound)
        for position, argument in bound.tables.items():
            if argument.table is None and position in facts.written:
                raise ArgumentError(
                    f"the body writes {argument.name!r} (or may do so in a function that it calls), a snapshot or a "
                    "NumPy array, which is only read: pass the table or strads.dvector(array) instead or, if the body "
                    "does not write it, strads.readonly(dvector)"
                )
        for pair in bound.overlaps:
            if facts.written.intersection(pair):
                first, second = (bound.arguments[position].name for position in pair)
                raise ArgumentError(
                    f"arguments {first!r} and {second!r} share memory, and the body writes one of them: pass the table "
                    "itself in both places, or a copy of what is only read"
                )
        return facts

    def _facts(self, bound: BoundArguments, batch: TableKind | None = None) -> BodyAnalysis:
        """Analyse the body; `batch` is the kind of its first parameter's rows, which are then the last argument."""
        arguments = bound.arguments[: None if batch is None else -1]
        return analyse_body(
            plain_function(self.body),
            [item.kind if isinstance(item, TableArgument) else None for item in arguments],
            bound.same[: len(arguments)],
            bound.float_scalars(),
            bound.tuples(),
            batch=batch,
            random=bound.random(),
            integers=bound.integer_scalars(),
        )

    def as_variant(self, kind: Variant, bound: BoundArguments) -> "LoopProgram | None":
        """Return a variant of the program; None if it is no use."""
        facts = {
            Variant.OUTCOMES: self.facts.with_outcomes,
            Variant.GUARDS: self.facts.with_guards,
            Variant.VARYING: self.facts.with_varying,
        }[kind]
        if facts is None or (kind is Variant.GUARDS and not self._may_reorder):
            return None
        with COMPILE_CLOCK.lock:
            if kind not in self._variants:
                self._variants[kind] = self._other(bound, facts=facts, variant=kind)
            return self._variants[kind]

    def by_element(self, bound: BoundArguments) -> "LoopProgram | None":
        """Return the program whose reconnaissance distinguishes the elements of rows; None if that is no use."""
        with COMPILE_CLOCK.lock:
            if self._by_element is None and self.facts.by_element and self._ghosts_suffice(bound):
                self._by_element = self._other(bound, facts=self.facts, variant=self.variant, by_element=True)
            return self._by_element

    def _other(self, bound: BoundArguments, **options: Any) -> "LoopProgram":
        return LoopProgram(self.body, bound, fastmath=self._may_reorder, **options)

    def _task(self, body: Any) -> Any:
        """Return the compiled function of an index and all arguments, given that of the body."""
        return body

    def _recorder(self, bound: BoundArguments, indices: LoopIndices, *, scratch: bool) -> Recorder:
        with COMPILE_CLOCK.running():
            if scratch not in self._recorders:
                recorder = self._new_recorder(bound, scratch=scratch)
                recorder.compile(bound, indices)
                self._recorders[scratch] = recorder
            return self._recorders[scratch]

    def _new_recorder(self, bound: BoundArguments, *, scratch: bool) -> Recorder:
        bodies = [self._recorded_body(bound, outcomes=outcomes) for outcomes in self.facts.outcomes or ({},)]
        recorder = Recorder(
            list(map(self._task, bodies)), bound, self.argument_roles, scratch=scratch, chunk=self._chunk
        )
        inputs = (
            self.argument_roles.roles,
            self.argument_roles.by_element,
            self.argument_roles.in_turn,
            scratch,
            self.facts.outcomes,
        )
        self._keep_on_disk(recorder.compiled, bound, "recorder", *inputs)
        return recorder

    def _recorded_body(self, bound: BoundArguments, **options: Any) -> Any:
        """Return the compiled body for reconnaissance, or for fetching what a task touches."""
        of_rows, tables = self.argument_roles.tables_of_rows, bound.tables
        kinds = {position: tables[position].kind for position in sorted(of_rows(bound, MAX_AXES - 1))}
        depths = tuple((position, kind.depth) for position, kind in kinds.items() if not kind.fields)
        logged = depths, frozenset(tables) - self.facts.written
        return compile_function(
            self.body, bound.float_dtype, records=True, tables=of_rows(bound), logged=logged, **options, **_RECORDED
        )

    def _ghosts_suffice(self, bound: BoundArguments) -> bool:
        roles = self.argument_roles.roles
        seen = {p: a for p, a in bound.tables.items() if roles[p].is_recorded or roles[p].is_relaxed}
        decided = (self.is_certain(bound) or self.variant) and self.facts.arrays.isdisjoint(seen)
        return bool(decided) and all(argument.can_be_ghost for argument in seen.values())

    def compile_recorder(self, bound: BoundArguments, indices: LoopIndices) -> Recorder:
        """Compile the fastest recorder that the body allows, or raise `CompileError`; compiling again is free."""
        if True in self._recorders or not self._ghosts_suffice(bound):
            return self.compile_scratch_recorder(bound, indices)
        try:
            return self._recorder(bound, indices, scratch=False)
        except Exception:  # the body treats rows as arrays: it needs real rows
            return self.compile_scratch_recorder(bound, indices)

    def compile_scratch_recorder(self, bound: BoundArguments, indices: LoopIndices) -> Recorder:
        """Compile the recorder that computes with copies of real rows."""
        with self._explaining():
            return self._recorder(bound, indices, scratch=True)

    @property
    def copies_rows(self) -> bool:
        """Whether the recorder, if one has been compiled, computes with copies of real rows."""
        return True in self._recorders

    def explain(self, bound: BoundArguments, index: int) -> None:
        """Run a failed task in the interpreter, to raise the error with its line."""
        explain_failure(self.body, bound, self.argument_roles.table_of, index)

    def worker(
        self,
        bound: BoundArguments,
        executable: ExecutablePlan,
        storages: tuple[Any, ...],
        checking: Checking = Checking.OWNERS,
        nonnegative: frozenset[Given] = frozenset(),
    ) -> Worker:
        """Compile the worker that executes plans, or raise `CompileError`; compiling again is free.

        `nonnegative`: see `nonnegative_numbers`.
        """
        indices, owned, in_order = executable.indices, executable.ownership, executable.in_loop_order
        dtype = indices.dtype if isinstance(indices, np.ndarray) else indices is None
        locked, short, fetches = (
            executable.plan.locks is not None,
            self.facts.is_short,
            executable.plan.details.prefetch_distance > 0
            and self.is_certain(bound),  # sizes may have changed since it was planned
        )
        roles = self.live_roles(bound, checking, in_loop_order=in_order)
        fetching = partial(self._fetching, bound, roles, nonnegative)
        worker: Worker = self._run_code(
            bound,
            lambda *task: make_worker(*task, locked=locked, short=short, fetching=fetching() if fetches else None),
            lambda code: compile_worker(code, executable, storages),
            ("worker", locked, short, fetches, dtype, None if owned is None else tuple(owned.block_of)),
            checking,
            in_loop_order=in_order,
            nonnegative=nonnegative,
        )
        return worker

    def _run_code(
        self,
        bound: BoundArguments,
        make: Callable[[Any, tuple[Any | None, ...], set[str] | bool], Any],
        compile_it: Callable[[Any], object],
        kind: tuple[Any, ...],
        checking: Checking = Checking.OWNERS,
        *,
        in_loop_order: bool = False,
        nonnegative: frozenset[Given] = frozenset(),
    ) -> Any:
        """Make and compile code for runs, or return what was compiled from the same inputs.

        Parameters
        ----------
        make
            Makes it of the task over live views, the constructors of the views, and the fast-math flags.
        compile_it
            Compiles it for the types of its arguments.
        kind
            Everything else that `make` and `compile_it` depend on.
        """
        roles, fastmath = self.live_roles(bound, checking, in_loop_order=in_loop_order), self._fastmath(checking, bound)
        unsigned = self._unsigned(nonnegative)
        checks = self.index_checks(bound, checking)
        inputs = kind, roles, checks, self.is_near(checking), unsigned
        key = *inputs, bool(fastmath)
        with COMPILE_CLOCK.lock:
            if key not in self._codes:
                with self._explaining(), COMPILE_CLOCK.running():
                    code = make(*self._live(bound, roles, checking, checks, unsigned), fastmath)
                    self._keep_on_disk(code, bound, *inputs, fastmath)
                    compile_it(code)
                self._codes[key] = code
            return self._codes[key]

    def _keep_on_disk(self, function: Any, bound: BoundArguments, *inputs: Any) -> None:
        """Cache on disk a function made from the body, its arguments' views and other inputs."""
        views = [(argument.ragged, argument.keyed) for argument in bound.arguments]
        keep_on_disk(function, type(self).__name__, self._fingerprint, str(bound.float_dtype), views, *inputs)

    def _live(
        self,
        bound: BoundArguments,
        roles: tuple[Role, ...],
        checking: Checking,
        checks: IndexChecks,
        unsigned: frozenset[Variable],
    ) -> tuple[Any, tuple[Any | None, ...]]:
        """Return the task over live views, and the constructors of the views."""
        fastmath = self._fastmath(checking, bound)
        key = checks.variables, bool(fastmath), unsigned
        if key not in self._live_bodies:
            body = compile_function(
                self.body,
                bound.float_dtype,
                error_model="numpy",
                fastmath=fastmath,
                boundscheck=checks.variables is None or None,
                unsigned=unsigned,
                checked=checks.variables or frozenset(),
            )
            self._live_bodies[key] = self._task(body)
        near = self.argument_roles.near if self.is_near(checking) else {}
        arguments = enumerate(zip(roles, bound.arguments, strict=True))
        return self._live_bodies[key], tuple(
            live_view(role, ragged=a.ragged, keyed=a.keyed, checks=checks.within(position), near=position in near)
            for position, (role, a) in arguments
        )

    def _unsigned(self, nonnegative: frozenset[Given]) -> frozenset[Variable]:
        """Return the variables of the source that, used as indices, are not negative as these numbers are not."""
        return frozenset(variable for variable, given in self.facts.nonnegative.items() if given <= nonnegative)

    def can_prefetch(self, bound: BoundArguments, indices: LoopIndices) -> bool:
        """Whether what a task touches can be found without running it, so that it can be fetched before."""
        facts = self.facts
        is_open = facts.outcomes or facts.near or facts.allocates or facts.scattered or facts.searches or bound.sums
        is_certain = self.is_certain(bound) and not is_open
        return is_certain and not self.compile_recorder(bound, indices).scratch

    def _fetching(self, bound: BoundArguments, roles: tuple[Role, ...], nonnegative: frozenset[Given]) -> Task:
        """Return the task over views that fetch what it touches, and their constructors."""
        task = self._task(self._recorded_body(bound, unsigned=self._unsigned(nonnegative)))
        ghosts = [role.is_relaxed or position in self.argument_roles.table_of for position, role in enumerate(roles)]
        arguments = enumerate(zip(roles, ghosts, bound.arguments, strict=True))
        return task, tuple(
            fetching_view(
                role,
                position,
                is_ghost=is_ghost,
                is_read=position in self.argument_roles.read_in_ghosts,
                ragged=argument.ragged,
                keyed=argument.keyed,
            )
            for position, (role, is_ghost, argument) in arguments
        )

    def is_near(self, checking: Checking) -> bool:
        """Whether jobs draw rows that they own; in a run of one job on one node, those are all."""
        return checking is Checking.OWNERS and bool(self.argument_roles.near)

    def _fastmath(self, checking: Checking, bound: BoundArguments) -> set[str] | bool:
        """Return the fast-math flags of a run: none if sums affect what was recorded or checked beforehand."""
        decides = self.facts.rounding_decides and checking is not Checking.ALL
        return _REORDERING if self._may_reorder and not decides and not self._only_sums_few(bound) else False

    def _only_sums_few(self, bound: BoundArguments) -> bool:
        """Whether tasks only loop over a few numbers: LLVM, which takes them for many, would vectorize such sums.

        That made a triangular solve with four numbers a row one and a half times as slow.
        """
        tables = bound.tables
        if not self.facts.segments or any(a.ragged or a.keyed or a.kind.depth != 1 for a in tables.values()):
            return False
        sizes = [(len(tables[a].storage), len(tables[p].storage)) for a, p in self.facts.segments.items()]
        return all(numbers < _FEW * ends for numbers, ends in sizes)

    def live_roles(self, bound: BoundArguments, checking: Checking, *, in_loop_order: bool = False) -> tuple[Role, ...]:
        """Return the roles of the arguments in a run."""
        key = checking, frozenset(self._checked_rows(bound, checking)), in_loop_order
        if key not in self._roles:
            roles = tuple(role.under(checking, is_bare=p in key[1]) for p, role in enumerate(self.argument_roles.roles))
            self._roles[key] = tuple(role.in_loop_order() for role in roles) if in_loop_order else roles
        return self._roles[key]

    def _checked_rows(self, bound: BoundArguments, checking: Checking) -> dict[int, frozenset[Variable]]:
        """Return the tables without views that check rows → the indices of rows that the body checks instead."""
        of_tables = self.facts.row_indices if checking is Checking.ALL else self.facts.volatile_row_indices
        if checking in self._always_checked:
            return self._always_checked[checking]
        found = dict[int, frozenset[Variable]]()
        for position, indices in of_tables.items():
            argument = bound.arguments[position]
            if not isinstance(argument, TableArgument) or argument.ragged or argument.keyed:
                continue
            variables = {i.variable for i in indices if i.fits is None or not bound.fit(i.fits)}
            if None not in variables:
                found[position] = frozenset(variable for variable in variables if variable is not None)
        if not any(index.fits for indices in of_tables.values() for index in indices):
            self._always_checked[checking] = found
        return found

    def index_checks(self, bound: BoundArguments, checking: Checking) -> IndexChecks:
        """Return which indices a run checks in the body: those of `part_checks`, and those of rows."""
        checks = self.part_checks(bound, checking)
        of_rows = frozenset[Variable]().union(*self._checked_rows(bound, checking).values())
        return checks if checks.variables is None else checks._replace(variables=checks.variables | of_rows)

    def part_checks(self, bound: BoundArguments, checking: Checking) -> IndexChecks:
        """Return which indices within rows and local arrays a run checks: those that reconnaissance has not checked."""
        indices = self.facts.part_indices if checking is Checking.ALL else self.facts.volatile_indices
        return IndexChecks.of([index for index in indices if index.fits is None or not bound.fit(index.fits)])

    def checks_are_cheap(self, bound: BoundArguments, tasks: int) -> bool:
        """Whether a run that checks every access, and so keeps a copy of what it writes, is hardly slower for it.

        It is if rows are checked outside of inner loops, or are long, and the written tables are small beside the work.
        """
        rows = [bound.tables[position].storage for position in self.facts.checked_in_loops]
        are_long = all(storage.nbytes >= _LONG_ROW * len(storage) for storage in rows)
        return not self.part_checks(bound, Checking.ALL) and are_long and self.writes_little(bound, tasks)

    def writes_little(self, bound: BoundArguments, tasks: int) -> bool:
        """Whether a copy of the written tables is negligible beside the tasks, or beside any call."""
        return self.written_bytes(bound) <= max(NEGLIGIBLE_COPY * tasks, _COPIED_AT_ONCE)

    def written_bytes(self, bound: BoundArguments) -> int:
        """Size of the tables that the loop writes."""
        return sum(bound.tables[position].storage.nbytes for position in self.facts.written)

    def same_bits_with_checks(self, bound: BoundArguments) -> bool:
        """Whether a run gives the same bits whichever accesses it checks: with checks, sums may not be vectorized."""
        return not self._may_reorder or not (bound.has_floats or self.facts.rounding_decides)

    def is_proved(self, bound: BoundArguments) -> bool:
        """Whether a run is certain to complete even if nothing has been recorded."""
        return self.facts.proof is not None and bound.fit(self.facts.proof)

    def gains_from_checks(self, bound: BoundArguments) -> bool:
        """Whether checking the indices beforehand makes a run of one job cheaper.

        It does not if the run is proved to complete, or if it checks the same indices and keeps a copy in either case.
        """
        if self.facts.rounding_decides:
            return True
        if self.is_proved(bound):
            return False
        every, volatile = Checking.ALL, Checking.BOUNDS
        views = {p for p, a in bound.tables.items() if not a.ragged}
        of_all, of_volatile = (
            {p for p in views if roles[p] in (Role.CHECKED, Role.CHECKED_RELAXED)}
            for roles in (self.live_roles(bound, every), self.live_roles(bound, volatile))
        )
        same = of_all == of_volatile and self.index_checks(bound, every) == self.index_checks(bound, volatile)
        return not same or self.is_certain(bound)

    def lasting_limits(self, bound: BoundArguments) -> dict[tuple[int, str | None], int]:
        """Return exclusive upper bounds on integers in written tables, by table and field, which last through a run."""
        found = dict[tuple[int, str | None], int]()
        for (own, size), fits in self.facts.lasting.items():
            limit = bound.size(size) if bound.fit(fits) else None
            if limit is not None:
                found[own[1], own[2]] = min(limit, found.get((own[1], own[2]), limit))
        return found

    def is_certain(self, bound: BoundArguments) -> bool:
        """Whether a run of a loop that reconnaissance has accepted is certain to complete."""
        return self.facts.is_certain and bound.fit(self.facts.volatile_fits)


def find_program(kind: type[Program], body: Callable[..., Any], bound: BoundArguments, fastmath: bool) -> Program:
    """Return the compiled program of a kind, reusing that of an earlier call if there is one."""
    key = (kind, fingerprint(body), bound.type_key, fastmath)
    with COMPILE_CLOCK.lock:
        program = _programs.pop(key, None) or kind(body, bound, fastmath=fastmath)
        _programs[key] = program  # the most recently used is last
        while len(_programs) > _MAX_PROGRAMS:
            del _programs[next(iter(_programs))]
    assert isinstance(program, kind)
    return program
