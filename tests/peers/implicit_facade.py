"""Our personalized ranking with the interface of implicit's recommenders."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from strads import models
from strads.errors import InputError


class BayesianPersonalizedRanking:
    """`implicit.bpr.BayesianPersonalizedRanking`. The model holds what it learns; all else is as given."""

    def __init__(
        self,
        factors: int = 100,
        learning_rate: float = 0.01,
        regularization: float = 0.01,
        dtype: Any = np.float32,
        iterations: int = 100,
        use_gpu: bool = False,
        num_threads: int = 0,
        verify_negative_samples: bool = True,
        random_state: Any = None,
    ):
        self.iterations = iterations
        self.model = models.BayesianPersonalizedRanking(
            factors,
            learning_rate,
            regularization,
            iterations=iterations,
            verify_negative_samples=verify_negative_samples,
            n_jobs=num_threads or None,
            random_state=random_state,
        )

    def fit(self, user_items: Any, show_progress: bool = True, callback: Callable[..., None] | None = None) -> None:
        """Learn; `callback(epoch, seconds, correct, skipped)` follows each epoch."""

        def tell(record: dict[str, Any]) -> None:
            if callback is not None:
                callback(record["iteration"] - 1, record["seconds"], record["correct"], record["skipped"])

        self.model.fit(user_items, on_iteration=tell)

    def recommend(
        self,
        userid: Any,
        user_items: Any,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: Any = None,
        recalculate_user: bool = False,
        items: Any = None,
    ) -> Any:
        """Return the best items and their scores."""
        if recalculate_user:
            raise NotImplementedError
        try:
            found, scores = self.model.recommend(userid, user_items, N, filter_already_liked_items, filter_items, items)
        except InputError as error:  # unknown ids
            raise IndexError(str(error)) from error
        return found.astype(np.int32), scores  # as implicit's own compiled functions want it

    def similar_items(
        self,
        itemid: Any,
        N: int = 10,
        recalculate_item: bool = False,
        item_users: Any = None,
        filter_items: Any = None,
        items: Any = None,
    ) -> Any:
        """Return the items that are most alike, and their cosines."""
        if recalculate_item or item_users is not None:
            raise NotImplementedError
        return self.model.similar_items(itemid, N, filter_items, items)

    def similar_users(self, userid: Any, N: int = 10, filter_users: Any = None, users: Any = None) -> Any:
        """Return the users that are most alike, and their cosines."""
        return self.model.similar_users(userid, N, filter_users, users)

    def save(self, file: Any) -> None:
        """Write the model to a file, given by its path or open."""
        if not hasattr(file, "write"):
            self.model.save(file)
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.npz"
            self.model.save(path)
            file.write(path.read_bytes())

    @classmethod
    def load(cls, file: Any) -> "BayesianPersonalizedRanking":
        """Read a model."""
        with tempfile.TemporaryDirectory() as folder:
            if hasattr(file, "read"):
                contents, file = file.read(), Path(folder) / "model.npz"
                file.write_bytes(contents)
            model = models.BayesianPersonalizedRanking.load(file)
        loaded = cls(iterations=model.iterations)
        loaded.model = model
        return loaded
