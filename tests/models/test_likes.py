"""Likes in any format, and what is refused."""

import numpy as np
import pytest
import scipy.sparse

import strads
from strads.errors import ArgumentError, InputError
from strads.models.ranking.likes import Likes

USERS, ITEMS = np.array([2, 0, 2, 2, 0]), np.array([3, 1, 0, 3, 2])  # (2, 3) twice


def lists(likes: Likes) -> list[list[int]]:
    return [likes.items[likes.offsets[user] : likes.offsets[user + 1]].tolist() for user in range(likes.n_users)]


def records(**fields: np.ndarray) -> strads.dvector:
    made = np.zeros(5, [("user", "i4"), ("item", "i8"), *((name, "f4") for name in fields)])
    made["user"], made["item"] = USERS, ITEMS
    for name, values in fields.items():
        made[name] = values
    return strads.dvector(made)


FORMS = {
    "sparse matrix": scipy.sparse.coo_matrix((np.ones(5), (USERS, ITEMS))),
    "sparse array of bool": scipy.sparse.csr_array((np.ones(5, bool), (USERS, ITEMS))),
    "pairs": np.stack([USERS, ITEMS], 1),
    "two arrays": (USERS, ITEMS),
    "records": records(),
    "records with weights": records(weight=np.arange(1.0, 6.0)),
}


@pytest.mark.parametrize("form", FORMS)
def test_formats(form):
    likes = Likes.of(FORMS[form])
    assert lists(likes) == [[1, 2], [], [0, 3]]
    assert likes.n_items == 4
    assert likes.of_items.tolist() == [1, 1, 1, 1]


def test_weight_0_is_no_like():
    likes = Likes.of(records(score=np.array([0, 1, 2, 0, 0])))
    assert lists(likes) == [[1], [], [0]]
    assert likes.n_items == 1 + 1


def test_selected_extended_and_without():
    likes = Likes.of((USERS, ITEMS))
    assert lists(likes.select(np.array([2, 1, 2]))) == [[0, 3], [], [0, 3]]
    assert lists(likes.among(np.array([1, 3]))) == [[0], [], [1]]
    assert lists(likes.extended((4, 9))) == [[1, 2], [], [0, 3], []]
    other = Likes.of((np.array([0, 1]), np.array([2, 3])), (3, 4))
    assert lists(likes.without(other)) == [[1], [], [0, 3]]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (scipy.sparse.csr_array([[1.0, -2.0]]), InputError, "user 0 has item 1 with the weight -2"),
        (scipy.sparse.csr_array([[1.0, np.nan]]), InputError, "with the weight nan"),
        (scipy.sparse.csr_array([[1.0, np.inf]]), InputError, "with the weight inf"),
        (scipy.sparse.csr_array([[1j]]), ArgumentError, "numbers"),
        (np.array([[0, 1], [1, -1]]), InputError, "item id -1"),
        (np.array([[0.5, 1.0]]), ArgumentError, "csr_array"),
        ((np.array([0, 1]), np.array([0])), InputError, "2 users, but 1 items"),
        (strads.dvector(np.zeros(3, [("who", "i4"), ("item", "i4")])), ArgumentError, "user and item"),
        ("likes.csv", ArgumentError, "pairs"),
    ],
)
def test_what_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        Likes.of(given)


def test_ids_outside_the_shape():
    with pytest.raises(InputError, match=r"user id 2 is outside 0 … 1"):
        Likes.of((USERS, ITEMS), (2, 4))
