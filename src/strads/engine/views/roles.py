"""The role of a body's argument, which determines the view through which the body sees it."""

from enum import Enum, auto


class Role(Enum):
    """Role of an argument, the same for every execution of a compiled loop."""

    SCALAR = auto()  # a number, passed as it is
    ACCUMULATOR = auto()  # a sum that the body adds to
    RANDOM = auto()  # random numbers
    READ = auto()  # a table that is only read, at indices that reconnaissance has checked
    CHECKED = auto()  # a table that is only read, at indices that can only be checked during the run
    ALIGNED = auto()  # a table that is only read, as A[k]: stored in plan order
    SEGMENTED = auto()  # a table that is only read, as A[p] with P[k] <= p < P[k + 1]: segments stored in plan order
    OFFSETS = auto()  # such an array P that is not read otherwise: its pairs are stored in plan order
    WRITTEN = auto()  # a table whose rows conflict: its accesses are recorded
    GUARDED = auto()  # as WRITTEN, but a run lets each job access only its own rows
    RELAXED = auto()  # a written table with a replica for each lane
    CHECKED_RELAXED = auto()  # as RELAXED, at indices that can only be checked during the run

    def in_loop_order(self) -> "Role":
        """Return the role in a run of the tasks in loop order, which is the order of the tables themselves."""
        return Role.READ if self in (Role.SEGMENTED, Role.OFFSETS) else self

    def under(self, checking: "Checking", *, is_bare: bool) -> "Role":
        """Return the role in a run with the given checking.

        A table `is_bare` if the body itself checks the rows that may not exist: then its view need not.
        """
        role = self
        if checking is Checking.BOUNDS and self is Role.GUARDED:
            role = Role.CHECKED
        elif checking is Checking.ALL and self not in (Role.SCALAR, Role.ACCUMULATOR, Role.RANDOM):
            role = Role.CHECKED_RELAXED if self.is_relaxed else Role.CHECKED
        if is_bare and role is Role.CHECKED_RELAXED:
            return Role.RELAXED
        if is_bare and role is Role.CHECKED:
            return Role.WRITTEN if self.is_recorded else Role.READ
        return role

    @property
    def is_recorded(self) -> bool:
        """Whether reconnaissance records the accesses."""
        return self in (Role.WRITTEN, Role.GUARDED)

    @property
    def is_relaxed(self) -> bool:
        """Whether lanes work on replicas."""
        return self in (Role.RELAXED, Role.CHECKED_RELAXED)


class Checking(Enum):
    """Which checks a run makes before each access."""

    OWNERS = auto()  # for guarded tables, that the job owns the row; nothing that reconnaissance has checked
    BOUNDS = auto()  # that the row exists: one job runs all tasks and owns all rows
    ALL = auto()  # the same for every access: nothing was recorded
