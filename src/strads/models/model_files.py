"""Model files: arrays and parameters in one `.npz`, without pickle, written atomically."""

import json
import os
import secrets
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from strads.errors import InputError
from strads.models.array_files import read_npz

_HEADER = "header"
_VERSION = 3  # of the format


def save_model(
    path: str | os.PathLike[str], kind: str, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a model file; an existing file is replaced only when the new one is complete.

    `load_model` rejects files of another `kind` of model. The parameters must be representable in JSON, and no array
    may be of dtype object.
    """
    header = json.dumps({"format": _VERSION, "kind": kind, "parameters": dict(parameters)})
    with replacing(Path(path)) as file:
        np.savez(file, allow_pickle=False, **{_HEADER: np.array(header)}, **arrays)


@contextmanager
def replacing(target: Path, encoding: str | None = None) -> Iterator[IO[Any]]:
    """Open a file that replaces `target` when the context ends, and is removed if it fails.

    Its permissions are those of new files under the umask. What it holds is on the disk before it gets its name. It is
    binary unless an encoding is given.
    """
    # In the target's own folder, so that the final rename stays on one file system; with an unpredictable name.
    temporary = target.with_name(f".{target.name}-{secrets.token_hex(8)}")
    mode = "xb" if encoding is None else "x"  # exclusive: follows no link and overwrites nothing
    unfinished = open(temporary, mode, encoding=encoding)  # noqa: SIM115
    try:
        with unfinished as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        _keep_name(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _keep_name(folder: Path) -> None:
    """Flush a renaming in a folder to disk, where the system supports it."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # of file systems that cannot: the file itself is on the disk
            os.fsync(number)
    finally:
        os.close(number)


def plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an estimator's parameters for JSON; `restored` is its inverse, except for arrays, which become lists.

    Keys in JSON are strings, but the labels in `class_weight` need not be: a dict is saved as pairs. A dataclass, such
    as a solver, is saved by its name and fields, a `RandomState` as None.
    """
    return {name: _plain(value) for name, value in parameters.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(key), _plain(content)] for key, content in value.items()]}
    if is_dataclass(value):
        return {"class": type(value).__name__, "fields": plain({f.name: getattr(value, f.name) for f in fields(value)})}
    if isinstance(value, np.random.RandomState):
        return None
    if hasattr(value, "__array__"):  # NumPy's numbers, arrays, columns of data frames
        value = np.asarray(value).tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return float(value) if isinstance(value, Fraction) else value


def restored(parameters: Mapping[str, Any], classes: Sequence[type]) -> dict[str, Any]:
    """Return the parameters that `plain` converted, of which dataclasses are among the given ones.

    Raises
    ------
    KeyError, TypeError, ValueError
        If a class is none of these, or its fields do not fit.
    """
    by_name = {each.__name__: each for each in classes}

    def restore(value: Any) -> Any:
        if isinstance(value, dict) and "pairs" in value:
            return dict(value["pairs"])
        return by_name[value["class"]](**value["fields"]) if isinstance(value, dict) else value

    return {name: restore(value) for name, value in parameters.items()}


def load_model(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a model file; returns its parameters and arrays.

    Raises
    ------
    InputError
        If the file is missing, corrupt, or of another kind of model.
    """
    name = os.fspath(path)
    header, arrays = _read(name)
    found, parameters, version = header["kind"], header["parameters"], header["format"]
    if version != _VERSION:
        raise InputError(f"{name}: has format {version}; this version of strads reads {_VERSION}")
    if found != kind:
        raise InputError(f"{name}: holds a {found}, not a {kind}; load it with {found}.load(...)")
    return parameters, arrays


def model_kind(path: str | os.PathLike[str]) -> str:
    """Return the class of the model in a file, read from its header alone.

    Raises
    ------
    InputError
        If the file is missing, or no model file.
    """
    header, _ = _read(os.fspath(path), {_HEADER})
    return str(header["kind"])


def _read(name: str, only: Container[str] | None = None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header of a model file and its arrays, all or some."""
    if not Path(name).exists():
        raise InputError(f"{name}: there is no such model file")
    try:
        arrays = read_npz(name, only)
        text = str(arrays.pop(_HEADER)[()])
        text.encode()  # refuses what no message could show
        header = json.loads(text)
        if not isinstance(header["parameters"], dict) or "kind" not in header or "format" not in header:
            raise ValueError("the header is incomplete")
    except (InputError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{name}: not a model file that strads wrote, or damaged") from error
    return header, arrays
