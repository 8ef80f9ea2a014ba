"""State as trees: whatever can be saved is restored, in place where it fits."""

import collections
import enum
import json
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from strads.checkpoints import Load, Save
from strads.checkpoints.manifests import arrays_in, renamed
from strads.errors import CheckpointError


class Colour(enum.Enum):
    RED, BLUE = 1, 2


@dataclass(frozen=True)
class Point:
    x: float
    y: np.ndarray


class Model:
    def __init__(self):
        self.weights = np.zeros(1000)
        self.view = self.weights[10:20]
        self.points = [Point(1.0, np.arange(3))]
        self.rng = np.random.default_rng(1)
        self.function = len
        self.queue = collections.deque([1, 2], maxlen=3)


class Chosen:
    checkpointed = ("kept",)

    def __init__(self):
        self.kept, self.other = np.zeros(3), object()


class Named:
    def __init__(self):
        self.array, self.object, self.weights = "users", "items", np.zeros(1000)


def round_trip(value, template=None, through_json=True):
    arrays = []

    def keep(array):
        arrays.append(array.copy())
        return str(len(arrays) - 1)

    tree = Save(keep).apart(value)
    if through_json:
        tree = json.loads(json.dumps(tree))

    def fetch(name, target):
        found = arrays[int(name)]
        if target is None or target.shape != found.shape or target.dtype != found.dtype:
            return found
        target[...] = found
        return target

    return Load(fetch).apart(tree, template)


SIMPLE = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers()
ARRAYS = hnp.arrays(
    hnp.scalar_dtypes() | hnp.array_dtypes(max_size=3, allow_subarrays=True),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=12),
)
VALUES = st.recursive(
    SIMPLE | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers(), st.text()), inner, max_size=4)
        | st.sets(st.integers())
    ),
    max_leaves=12,
)


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, set):
        return a == b
    if isinstance(a, float | complex) and a != a:
        return b != b
    return type(a) is type(b) and a == b and str(a) == str(b)


@settings(deadline=None, max_examples=200)
@given(VALUES)
def test_round_trip(value):
    assert same(value, round_trip(value))


def test_objects_are_restored_in_place():
    saved, found = Model(), Model()
    saved.weights += np.arange(1000)
    saved.points.append(Point(2.0, np.ones(500)))
    saved.rng.random(7)
    saved.queue.append(5)
    weights = found.weights
    assert round_trip(saved, found) is found
    assert found.weights is weights
    assert found.view.base is weights  # still views of it
    np.testing.assert_array_equal(found.view, saved.view)
    assert found.points[1].x == 2.0
    assert found.rng.random() == saved.rng.random()
    assert found.queue == saved.queue
    assert found.function is len


def test_shared_arrays_stay_shared():
    array = np.arange(1000)
    found = round_trip({"a": array, "b": [array]})
    assert found["a"] is found["b"][0]


def test_only_chosen_attributes():
    saved, found = Chosen(), Chosen()
    saved.kept += 1
    other = found.other
    round_trip(saved, found)
    assert found.kept.tolist() == [1, 1, 1]
    assert found.other is other


def test_attributes_with_the_names_of_a_tree():
    tree = renamed(Save(lambda array: "0").apart(Named()), {"0": "1"}.get)
    assert list(arrays_in(tree)) == ["1"]
    found = Load(lambda name, target: np.ones(1000)).apart(tree, Named())
    assert (found.array, found.object, found.weights.sum()) == ("users", "items", 1000)


def test_chosen_attributes_must_exist():
    saved = Chosen()
    del saved.kept
    with pytest.raises(CheckpointError, match=r"Chosen.checkpointed names 'kept'"):
        round_trip(saved, Chosen())


def test_enumerators_come_from_the_template():
    assert round_trip([Colour.BLUE], [Colour.RED]) == [Colour.BLUE]


def test_no_class_is_imported():
    with pytest.raises(CheckpointError, match=r"has a .*Point, which the program's lacks"):
        round_trip(Point(1.0, np.zeros(2)))


def test_what_cannot_be_saved_is_named():
    @dataclass
    class Holder:
        parts: list = field(default_factory=lambda: [0, open(__file__)])  # noqa: SIM115

    with pytest.raises(CheckpointError, match=r"^\.parts\[1\].*TextIOWrapper cannot be part"):
        round_trip(Holder())


def test_arrays_of_objects():
    labels = np.array(["a", "long word", None, 3], object)
    assert round_trip(labels).tolist() == labels.tolist()


class Pair:
    def __init__(self):
        self.first = self.second = Holder(np.zeros(100))


class Holder:
    def __init__(self, array):
        self.array = array


def test_one_thing_that_has_become_two():
    arrays = {}

    def keep(array):
        arrays[str(len(arrays))] = array.copy()
        return str(len(arrays) - 1)

    pair = Pair()
    pair.second = Holder(np.ones(100))
    found = Load(lambda name, target: _read(arrays[name], target))(Save(keep)(pair), Pair())
    assert found.first.array.sum() == 0
    assert found.second.array.sum() == 100


def _read(array, target):
    if target is None:
        return array.copy()
    target[...] = array
    return target


@pytest.mark.parametrize("shape", [(3, 4), (30, 40)])
@pytest.mark.parametrize("is_writeable", [True, False, None])
def test_arrays_keep_their_order_in_memory(shape, is_writeable):
    arrays = {}

    def keep(array):
        arrays[str(len(arrays))] = np.ascontiguousarray(array).copy()
        return str(len(arrays) - 1)

    array = np.asfortranarray(np.arange(np.prod(shape), dtype="f8").reshape(shape))
    tree, template = Save(keep)(array), None
    if is_writeable is not None:
        template = np.zeros_like(array)
        template.flags.writeable = is_writeable
    found = Load(lambda name, target: arrays[name].copy())(tree, template)
    assert found.strides == array.strides
    assert (found == array).all()
