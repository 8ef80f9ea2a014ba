"""Value numbering: which computations have equal results."""

from collections.abc import Hashable


class Numbers:
    """Value numbers: equal for equal operations on equal operands."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def of(self, key: Hashable) -> int:
        """Return the number of a variable or an operation."""
        return self._known.setdefault(key, len(self._known))
