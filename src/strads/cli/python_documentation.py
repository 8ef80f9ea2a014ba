"""The documentation that every Python installation carries: real text, without a download."""

import ast
import inspect
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from strads.errors import InputError

# Tests, bundled programs, and grammars of other Python versions; none of them documents the library.
_SKIPPED = {
    *("__hello__.py", "__phello__", "idlelib", "lib2to3", "test", "tests", "turtledemo"),
    *("__pycache__", "dist-packages", "site-packages"),
}
_DOCUMENTED = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def python_documentation(folder: Path | None = None) -> list[tuple[str, str]]:
    """The docstrings of the standard library's modules, classes and functions, found without importing anything.

    Parameters
    ----------
    folder : Path, optional
        Folder to search. By default the standard library of the running Python.

    Returns
    -------
    list of (name, text)
        Names like `json.decoder.JSONDecoder.decode`; in the order of the files' names and of their lines. Files
        that this Python cannot parse are left out.

    Raises
    ------
    InputError
        If no documentation is found, as in installations without sources.
    """
    root = Path(sysconfig.get_path("stdlib")) if folder is None else folder
    documents: list[tuple[str, str]] = []
    for path in _sources(root):
        name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # for invalid escapes in old sources
                module = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError, RecursionError, OSError):
            continue
        documents.extend(_docstrings(module, name))
    if not documents:
        raise InputError(f"{root}: there are no Python sources with documentation, as the demo needs")
    return documents


def _sources(folder: Path) -> Iterator[Path]:
    """Source files in and below a folder, in the order of their names."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name in _SKIPPED or path.is_symlink():
            continue
        if path.is_dir():
            yield from _sources(path)
        elif path.suffix == ".py":
            yield path


def _docstrings(node: ast.Module | _DOCUMENTED, name: str) -> Iterator[tuple[str, str]]:
    """The docstring of a module, class or function, and those within it."""
    text = ast.get_docstring(node, clean=False)
    if text and text.strip():
        yield name, inspect.cleandoc(text).strip()
    for child in node.body:
        if isinstance(child, _DOCUMENTED):
            yield from _docstrings(child, f"{name}.{child.name}")
