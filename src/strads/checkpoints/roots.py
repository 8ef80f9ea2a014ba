"""The things whose state operators change, numbered in the order in which operators first use them."""

import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any


class Roots:
    """Numbers of roots, which are the same whenever the same program runs; holds no references to the roots."""

    def __init__(self) -> None:
        self._references: list[weakref.ref[Any]] = []
        self._numbers: dict[int, int] = {}  # id of a living root → its number
        self._versions: dict[int, Any] = {}

    def number_of(self, root: Any) -> int:
        """Return the number of a root; the next one if it has none."""
        number = self._numbers.get(id(root))
        if number is None:
            number = self._numbers[id(root)] = len(self._references)
            self._references.append(weakref.ref(root, partial(_forget, self._numbers, id(root))))
            self._versions[number] = version_of(root)
        return number

    def find(self, root: Any) -> int | None:
        """Return the number of a root, or None."""
        return self._numbers.get(id(root))

    def get(self, number: int) -> Any:
        """Return a root, or None if it is no longer alive."""
        return self._references[number]() if number < len(self._references) else None

    def alive(self) -> Iterator[tuple[int, Any]]:
        """Yield the numbers and roots that are alive."""
        for number in sorted(self._numbers.values()):
            root = self._references[number]()
            if root is not None:
                yield number, root

    def changes(self) -> list[int]:
        """Return the numbers of roots that have another version than in the previous call."""
        changed = []
        for number, root in self.alive():
            version = version_of(root)
            if version is not None and self._versions[number] != version:
                changed.append(number)
            self._versions[number] = version
        return changed


def version_of(root: Any) -> Any:
    """Return what increases with each change of a root; None if it does not tell."""
    return getattr(root, "version", None)


def _forget(numbers: dict[int, int], identity: int, reference: Any) -> None:
    """Remove the number of a root that is collected."""
    numbers.pop(identity, None)
