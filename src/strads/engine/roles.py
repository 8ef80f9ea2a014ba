"""The part that an argument of a body plays; it decides through which view the body sees it."""

from enum import Enum, auto


class Role(Enum):
    """Part of one argument, the same for every execution of a compiled loop."""

    SCALAR = auto()  # a number, passed as it is
    ACCUMULATOR = auto()  # a sum that the body adds to
    READ = auto()  # a table that is only read, at indices that reconnaissance has checked
    CHECKED = auto()  # a table that is only read, at indices that only the run itself can check
    ALIGNED = auto()  # a table that is only read, as A[k]: stored in plan order
    SEGMENTED = auto()  # a table that is only read, as A[p] with P[k] <= p < P[k + 1]: so stored in plan order
    OFFSETS = auto()  # such an array P of which nothing else is read: its pairs are stored in plan order
    WRITTEN = auto()  # a table whose rows conflict: its accesses are recorded
    GUARDED = auto()  # as WRITTEN, but a run lets each job touch its own rows only
    RELAXED = auto()  # a written table with a replica for each lane
    CHECKED_RELAXED = auto()  # as RELAXED, at indices that only the run itself can check

    def in_loop_order(self) -> "Role":
        """Return the part in a run of the tasks in their order, in which such tables lie."""
        return Role.READ if self in (Role.SEGMENTED, Role.OFFSETS) else self

    def under(self, checking: "Checking") -> "Role":
        """Return the part in a run that checks other accesses than those that only the run can check."""
        if checking is Checking.BOUNDS:
            return Role.CHECKED if self is Role.GUARDED else self
        if checking is Checking.ALL and self not in (Role.SCALAR, Role.ACCUMULATOR):
            return Role.CHECKED_RELAXED if self.is_relaxed else Role.CHECKED
        return self

    @property
    def is_recorded(self) -> bool:
        """Whether reconnaissance records the accesses."""
        return self in (Role.WRITTEN, Role.GUARDED)

    @property
    def is_relaxed(self) -> bool:
        """Whether lanes work on replicas."""
        return self in (Role.RELAXED, Role.CHECKED_RELAXED)


class Checking(Enum):
    """What a run checks of an access before it is made."""

    OWNERS = auto()  # of guarded tables whether the job owns the row; of what reconnaissance has checked nothing
    BOUNDS = auto()  # whether the row exists: one job runs all tasks and owns all rows
    ALL = auto()  # so for every access: nothing was recorded
