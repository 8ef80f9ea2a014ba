"""The directory of a training run: its record, the metrics of each epoch, the model, and text files."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Self

from strads.errors import InputError
from strads.models.model_files import replacing

RUN, METRICS, MODEL = "run.json", "metrics.jsonl", "model.npz"
TOPICS, COEFFICIENTS = "topics.txt", "coefficients.tsv"
_ROOM = b"\n" * 4096  # of the record of a run that has begun, for what is added when it ends
_TEXTS = (TOPICS, COEFFICIENTS)  # files that runs of any model may have written
FILES = (RUN, METRICS, MODEL, *_TEXTS)


class RunDirectory:
    """Files of one run. A context manager that records the outcome in `run.json`.

    Parameters
    ----------
    path : Path
        The directory; created by `begin`.
    overwrite : bool
        Whether an earlier run there may be replaced.
    texts : sequence of str
        Names of additional files of this run.

    Raises
    ------
    InputError
        If the directory cannot be used or holds an earlier run; nothing has been changed.
    """

    def __init__(self, path: Path, *, overwrite: bool, texts: Sequence[str] = ()) -> None:
        self.path = path
        self._texts = tuple(texts)
        self._record: dict[str, Any] = {}
        self._earlier: Sequence[str] = ()
        self._metrics: IO[bytes] | None = None
        self._written = self._good = 0
        self._is_full = False
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: is a file: give a directory for the run with --out")
        present = [name for name in (RUN, METRICS, MODEL, *self._texts) if (path / name).exists()]
        if present and not overwrite:
            raise InputError(
                f"{path}: holds {_earlier_run(path)} ({', '.join(present)}): "
                "give another --out, or --overwrite to replace it"
            )

    @property
    def model(self) -> Path:
        """Path of the model."""
        return self.path / MODEL

    def begin(self, record: Mapping[str, Any], *, continues: bool = False) -> None:
        """Create the directory, remove an earlier run, and write `run.json` with the status "running".

        A run that continues another one removes it with its first record: then it is known to be the same.

        Raises
        ------
        InputError
            If the directory cannot be written to.
        """
        self._record = {"status": "running", "started": _now(), "ended": None, **record}
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._earlier = _TEXTS if (self.path / RUN).exists() else self._texts
            self.write(RUN, self._text())
            with open(self.path / RUN, "ab") as file:
                file.write(_ROOM)
            if not continues:
                self._remove_earlier()
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written to: {error.strerror}; give another --out") from error

    def _remove_earlier(self) -> None:
        for name in (MODEL, *self._earlier):
            (self.path / name).unlink(missing_ok=True)
        for name in (MODEL, RUN, *self._earlier):
            for unfinished in self.path.glob(f".{name}-*"):
                unfinished.unlink(missing_ok=True)  # left by a killed process
        self._metrics = open(self.path / METRICS, "wb", buffering=0)  # noqa: SIM115

    def append(self, record: Mapping[str, Any]) -> None:
        """Append the record of an epoch to the metrics, so that it survives later failures.

        If the disk is full, the metrics end with the record before, unless `complete` can add the rest.
        """
        if self._is_full:
            return
        if self._metrics is None:
            self._remove_earlier()
        assert self._metrics is not None
        line = (json.dumps(_plain(record), ensure_ascii=False) + "\n").encode()
        try:
            while line:
                line = line[self._metrics.write(line) :]
        except OSError:
            self._is_full = True
            self._metrics.truncate(self._good)
            self._metrics.seek(self._good)
            return
        self._good = self._metrics.tell()
        self._written += 1

    def complete(self, history: list[dict[str, Any]]) -> None:
        """Append the epochs of a history that were not appended because of an interrupt, or of a full disk."""
        self._is_full = False
        for record in history[self._written :]:
            self.append(record)

    def finish(self, status: str, result: Mapping[str, Any]) -> None:
        """Record how the run ended ("finished", "interrupted" or "failed"), and its results."""
        self._record |= {"status": status, "ended": _now(), **result}
        try:
            self.write(RUN, self._text())
        except OSError:  # a full disk: into the room that the file has
            text = self._text().encode()
            with open(self.path / RUN, "r+b") as file:
                file.write(text)
                file.truncate()

    def write(self, name: str, text: str) -> None:
        """Write one of the texts; an existing one is replaced only when the new one is complete."""
        with replacing(self.path / name, encoding="utf-8") as file:
            file.write(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._metrics is not None:
            self._metrics.close()
            self._metrics = None

    def _text(self) -> str:
        return json.dumps(_plain(self._record), indent=2, ensure_ascii=False) + "\n"


def _earlier_run(path: Path) -> str:
    try:
        status = json.loads((path / RUN).read_text(encoding="utf-8"))["status"]
    except (OSError, ValueError, KeyError, TypeError):
        return "an earlier run"
    return f"an earlier run with the status {status!r}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _plain(value: Any) -> Any:
    """`value` as JSON can have it: null for NaN and infinities, texts for paths."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
