"""The tables of strads as plain Python sees them: the meaning that a loop body has, without any parallelism.

Only random numbers are those of strads, whose generator has published test vectors.
"""

import operator

import numpy as np

from strads.rng.numbers import NumbersOfTask, RandomNumbers


class Unsigned(int):
    """An element of an unsigned table: Numba computes with two of them in 64 bits without a sign, which wrap."""

    def _wrapped(self, result, other):
        return Unsigned(result % 2**64) if isinstance(other, Unsigned) else result

    def __add__(self, other):
        return self._wrapped(int(self) + int(other), other)

    def __sub__(self, other):
        return self._wrapped(int(self) - int(other), other)

    def __mul__(self, other):
        return self._wrapped(int(self) * int(other), other)


class Table:
    """Rows of numbers, of one shape. `seen` collects (name, row) of what a task touches."""

    def __init__(self, name, data, seen=None):
        self.name, self.data, self.seen = name, data, seen

    def _note(self, index):
        row = index[0] if isinstance(index, tuple) else index
        if self.seen is not None and not isinstance(row, slice):
            self.seen.add((self.name, operator.index(row) % max(len(self.data), 1)))

    def __getitem__(self, index):
        value = self.data[index]
        self._note(index)
        return Unsigned(value) if isinstance(value, np.unsignedinteger) else value

    def __setitem__(self, index, value):
        self.data[index] = value
        self._note(index)

    def __len__(self):
        return len(self.data)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.data, dtype)

    def __iadd__(self, value):
        self.data += value
        return self

    @property
    def shape(self):
        return self.data.shape


class Record:
    """One record: `r.count += 1` changes the table."""

    def __init__(self, row):
        object.__setattr__(self, "row", row)

    def __getattr__(self, field):
        if field.startswith("_") or field == "row":  # asked for by `copy`
            raise AttributeError(field)
        value = self.row[field]
        return value[()] if value.ndim == 0 else value

    def __setattr__(self, field, value):
        self.row[field][...] = value


class Records(Table):
    """A table of records, a structured array."""

    def __getitem__(self, index):
        index = operator.index(index)
        if not -len(self.data) <= index < len(self.data):
            raise IndexError(index)
        self._note(index)
        row = index % len(self.data)
        return Record(self.data[row : row + 1].reshape(()))  # without dimensions it is still a view


class Ragged(Table):
    """Rows of different lengths: a list of arrays."""

    def __setitem__(self, index, value):
        if isinstance(index, tuple):
            self.data[index[0]][index[1]] = value
        else:
            self.data[index][...] = value
        self._note(index)

    def __getitem__(self, index):
        value = self.data[index[0]][index[1]] if isinstance(index, tuple) else self.data[index]
        self._note(index)
        return value


class Map:
    """A dmap or a dmultimap: `data` has a number or an array for each key."""

    def __init__(self, name, data, seen=None):
        self.name, self.data, self.seen = name, data, seen

    def _key(self, key):
        key = operator.index(key)
        if self.seen is not None:
            self.seen.add((self.name, key))
        return key

    def __contains__(self, key):
        return self._key(key) in self.data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, key):
        return self.data[self._key(key)]

    def __setitem__(self, key, value):
        old = self.data[self._key(key)]  # a body adds no keys: KeyError
        if isinstance(old, np.ndarray):
            old[...] = value
        else:
            self.data[operator.index(key)] = type(old)(value)


class Sum:
    """An accumulator."""

    def __init__(self, initial):
        self.value = initial

    def add(self, amount):
        self.value += amount


class Draws:
    """Random numbers; `position` is that of the argument, and `calls` counts loops that have ended."""

    def __init__(self, seed):
        self.seed, self.calls = seed, 0

    def begin(self, position, k):
        numbers = RandomNumbers(self.seed)
        numbers.calls = self.calls
        self.task = NumbersOfTask(numbers.key(position), np.float64(1))
        self.task.begin(k)

    def random(self):
        return self.task.random()

    def integers(self, low, high=None):
        return self.task.integers(low, high)

    def near(self, table):
        return self.task.near(table)
