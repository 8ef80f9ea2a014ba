"""Which columns of a table hold users, items, scores and times, by the names that people give them."""

from collections.abc import Mapping, Sequence

from strads.errors import InputError

ROLES = ("user", "item", "score", "timestamp")
_KNOWN = {
    "user": "user users userid useridx uid username customer customerid reviewer reviewerid visitor visitorid "
    "member memberid account accountid profileid",
    "item": "item items itemid itemidx iid movie movieid product productid book bookid isbn asin parentasin song "
    "songid track trackid artist artistid article articleid business businessid anime animeid game gameid recipe "
    "recipeid sku video videoid",
    "score": "score scores rating ratings stars star overall weight grade bookrating starrating moviescore "
    "reviewrating reviewscore count plays playcount",
    "timestamp": "timestamp timestamps time times date datetime ts unixtime unixreviewtime unixtimestamp",
}
_ROLE_OF = {name: role for role, names in _KNOWN.items() for name in names.split()}


def role_of(name: str) -> str | None:
    """Return what a column of this name holds, one of `ROLES`; None if the name is unknown."""
    return _ROLE_OF.get("".join(filter(str.isalnum, name.lower())))


def choose(
    found: Sequence[str],
    *,
    scored: bool | None,
    timed: bool | None = False,
    given: Mapping[str, str] | None = None,
    where: str = "",
    advice: str,
) -> dict[str, str]:
    """Return the column of each role.

    Parameters
    ----------
    found : sequence of str
        The columns that there are.
    scored : bool or None
        Whether a column of scores is needed; None: none is chosen.
    timed : bool or None
        Whether a column of times is needed; None: none is chosen. If it is not needed, several that could be meant are
        no error.
    given : mapping, optional
        Columns that the user has named, by role.
    where, advice : str
        Beginning and end of messages.

    Returns
    -------
    dict
        Columns of "user" and "item", and of "score" and "timestamp" if they are there or needed.

    Raises
    ------
    InputError
        If a column is missing, or several could be meant; it names them.
    """
    given = dict(given or {})
    missing = [name for name in given.values() if name not in found]
    if missing:
        raise InputError(f"{where}there is no column {_quoted(missing)}: {advice} can choose from {_quoted(found)}")
    twice = [name for name in given.values() if found.count(name) > 1]
    if twice:
        raise InputError(f"{where}several columns are called {twice[0]!r}: rename them")
    chosen = given
    needed = {"user": True, "item": True, "score": scored, "timestamp": timed}
    for role, is_needed in needed.items():
        if role in given or is_needed is None:
            continue
        columns = [name for name in found if name not in given.values() and role_of(name) == role]
        columns = [role] if role in columns else columns
        if len(columns) == 1 and found.count(columns[0]) == 1:
            chosen[role] = columns[0]
        elif is_needed or (columns and role != "timestamp"):
            problem = f"several columns may hold the {role}" if columns else f"no column is known to hold the {role}"
            raise InputError(f"{where}{problem}: {advice} names it among {_quoted(found)}")
    return {role: chosen[role] for role, is_needed in needed.items() if role in chosen and is_needed is not None}


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
