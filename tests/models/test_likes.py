"""Likes in any format, and what is refused."""

import numpy as np
import pytest
import scipy.sparse

import strads
from strads.errors import ArgumentError, InputError
from strads.models.factorization.item_log import ItemLog
from strads.models.ranking.likes import KnownLikes, Likes, as_likes

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


def of(given: object, shape: tuple[int, int] = (3, 4)) -> Likes:
    """Likes whose ids are rows."""
    found = as_likes(given)
    return Likes.of(found.users.codes, found.items.codes, shape)


@pytest.mark.parametrize("form", FORMS)
def test_formats(form):
    likes = of(FORMS[form])
    assert lists(likes) == [[1, 2], [], [0, 3]]
    assert likes.n_items == 4
    assert likes.of_items.tolist() == [1, 1, 1, 1]


def test_weight_0_is_no_like():
    assert lists(of(records(score=np.array([0, 1, 2, 0, 0])))) == [[1], [], [0]]


def test_selected_among_and_without():
    likes = of((USERS, ITEMS))
    assert lists(likes.select(np.array([2, 1, 2]))) == [[0, 3], [], [0, 3]]
    assert lists(likes.among(np.array([1, 3]))) == [[0], [], [1]]
    other = of((np.array([0, 1]), np.array([2, 3])))
    assert lists(likes.without(other)) == [[1], [], [0, 3]]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (scipy.sparse.csr_array([[1.0, -2.0]]), InputError, "user 0 has item 1 with the weight -2"),
        (scipy.sparse.csr_array([[1.0, np.nan]]), InputError, "with the weight nan"),
        (scipy.sparse.csr_array([[1.0, np.inf]]), InputError, "with the weight inf"),
        (scipy.sparse.csr_array([[1j]]), ArgumentError, "numbers"),
        (np.array([[0.5, 1.0]]), ArgumentError, "csr_array"),
        ((np.array([0, 1]), np.array([0])), InputError, "2 users, but 1 items"),
        (strads.dvector(np.zeros(3, [("who", "i4"), ("item", "i4")])), InputError, "hold the user.*'who', 'item'"),
        ("likes.csv", ArgumentError, "pairs"),
    ],
)
def test_what_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        as_likes(given)


@pytest.mark.parametrize("later", [0, 1])
def test_likes_of_nobody(later):
    log = ItemLog()
    log.append(*(np.zeros(later, np.int32) for _ in range(2)))
    known = KnownLikes(of((USERS, ITEMS)), log)
    assert lists(known.select(np.zeros(0, np.int64), 4)) == []
