"""Options for how a file of users and items is read."""

from dataclasses import dataclass
from typing import Annotated

import typer

from strads.cli.train_options import data_option
from strads.models.interactions.column_names import ROLES


def _columns(value: str | None) -> str | None:
    if value is not None:
        named_columns(value)
    return value


def named_columns(value: str) -> dict[str, str]:
    """Return the column of each role that `--columns` names.

    Raises
    ------
    typer.BadParameter
        If it names none, or one twice.
    """
    parts = [part.strip() for part in value.split(",")]
    if not any("=" in part for part in parts):
        parts = [f"{role}={part}" for role, part in zip(ROLES, parts, strict=False)] if 1 < len(parts) < 5 else []
    columns = {role.strip(): name.strip() for role, _, name in (part.partition("=") for part in parts)}
    is_valid = len(columns) == len(parts) == len(set(columns.values())) and all(columns.values())
    if not columns or not is_valid or not set(columns) <= set(ROLES):
        raise typer.BadParameter(
            f"{value!r}: give different names, such as userId,movieId,rating or user=userId,item=movieId,score=rating"
        )
    return columns


def _delimiter(value: str | None) -> str | None:
    if value == "" or (value is not None and "\n" in value):
        raise typer.BadParameter("give the character between columns, such as ',' or '\\t'")
    return None if value is None else value.replace("\\t", "\t")


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """How a file of users and items is read; what is None is detected."""

    columns: Annotated[
        str | None,
        data_option(
            metavar="USER,ITEM,SCORE",
            callback=_columns,
            help="Names of the columns, or user=NAME,item=NAME,score=NAME; without a header, positions from 1. "
            "Usual names are known, such as userId, movieId, rating.",
        ),
    ] = None
    delimiter: Annotated[
        str | None, data_option(callback=_delimiter, help="Text between columns; detected by default.")
    ] = None
    header: Annotated[
        bool | None,
        data_option("--header/--no-header", help="Whether the first line names columns; detected by default."),
    ] = None

    @property
    def named(self) -> dict[str, str]:
        """The column of each role ("user", "item", "score", "timestamp") that `columns` names."""
        return {} if self.columns is None else named_columns(self.columns)
