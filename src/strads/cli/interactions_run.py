"""Common base of the runs that train on users and items: reading the interactions, and holding some out."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Annotated, ClassVar, Literal

from strads.cli.interactions_file import FileContent, read_interactions
from strads.cli.interactions_options import FileFormat
from strads.cli.train_options import data_option, share
from strads.cli.train_run import Record, TrainRun
from strads.errors import InputError
from strads.models.held_out import held_out
from strads.models.interactions.interactions import Interactions
from strads.models.ranking.metrics import last_share, leave_one_out


@dataclass(kw_only=True)
class InteractionsRun(TrainRun):
    """Common base of the runs of `strads train mf` and `bpr`."""

    reading: FileFormat
    holdout: Annotated[float, data_option(callback=share, help="Share to hold out, chosen at random, and test on.")] = (
        0.1
    )
    split: Annotated[
        Literal["random", "time", "last"],
        data_option(help="Hold out at random, the last by time, or the last of each user; these need timestamps."),
    ] = "random"

    noun: ClassVar[str]  # what the interactions are called, such as "ratings"

    _content: FileContent = field(init=False)
    _counts: dict[str, int] = field(init=False)  # of distinct users and items
    _rest: Interactions = field(init=False)
    _held_out: Interactions | None = field(init=False)

    @property
    def is_scored(self) -> bool:
        """Whether the file needs scores."""
        return True

    def used(self, given: Interactions) -> Interactions:
        """Return what the model learns from, of all interactions in the file."""
        return given

    def read(self) -> None:
        """Read the interactions, and set some aside."""
        timed = self.split != "random" and self.holdout > 0
        self._content = read_interactions(self.data, self.reading, scored=self.is_scored, timed=timed)
        used = self.used(self._content.interactions)
        ids = {"users": used.users, "items": used.items}
        self._counts = {name: len(column.factorized()[1]) for name, column in ids.items()}
        self._rest, self._held_out = self._split(used)

    def _split(self, rows: Interactions) -> tuple[Interactions, Interactions | None]:
        """Return the interactions to train on and those to hold out: none for a share of 0."""
        if self.holdout == 0:
            return rows, None
        if self.split == "random":
            if len(rows) < 2:
                raise InputError(f"holding out needs at least two {self.noun}: give more, or --holdout 0")
            held = held_out(len(rows), self.holdout, self.common.seed)
        else:
            assert rows.times is not None
            is_last = self.split == "last"
            held = leave_one_out(rows.users, rows.times) if is_last else last_share(rows.times, self.holdout)
            if held.all() or not held.any():
                raise InputError(
                    f"--split {self.split} leaves nothing to hold out or to train on: give more, or --holdout 0"
                )
        return rows[~held], rows[held]

    def fit(self, on_record: Callable[[Record], object]) -> None:
        """Train on what was not held out."""
        self.model.fit(self._rest, validation=self._held_out, on_iteration=on_record)

    def announcement(self) -> list[str]:
        """The numbers of interactions, items and users, and the columns of the file."""
        about = self.about_data()
        held = f"; {about['held_out']:,} held out" if self._held_out is not None else ""
        counts = f"{about[self.noun]:,} {self.noun} of {about['items']:,} items by {about['users']:,} users{held}"
        return [counts, *self._content.about_columns()]

    def arguments(self) -> Record:
        """How the file is read."""
        return {**asdict(self.reading), "holdout": self.holdout, "split": self.split}

    def about_data(self) -> Record:
        """The columns, and the numbers of interactions, users and items."""
        held = 0 if self._held_out is None else len(self._held_out)
        return {
            "columns": self._content.columns,
            self.noun: len(self._rest) + held,
            "held_out": held,
            **self._counts,
        }
