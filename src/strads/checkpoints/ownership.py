"""Which of several programs owns a folder; the others stop writing, and remove nothing."""

import contextlib
import secrets

from strads.checkpoints.storage import DamagedFileError, Folder

_NAME = "owner.json"


class OtherProgramError(Exception):
    """Another program has begun to write to the folder."""


class Ownership:
    """A program's claim to a folder, made before its first snapshot: one that is refused claims nothing."""

    def __init__(self, folder: Folder):
        self._folder, self._token = folder, secrets.token_hex(8)
        self._before: str | None = None
        with contextlib.suppress(Exception):
            self._before = self._found()

    def check(self) -> None:
        """Raise an error if the folder is no longer this program's; at first, claim it.

        Raises
        ------
        OtherProgramError
            If another program has claimed it since this one was started.
        OSError, DamagedFileError
            If the storage does not say whose it is.
        """
        found = self._found()
        if found == self._token:
            return
        if found is not None and found != self._before:
            raise OtherProgramError
        self._claim()

    def _claim(self) -> None:
        self._folder.write_json(_NAME, {"token": self._token})

    def _found(self) -> str | None:
        """Return the token of the latest program; None if there is none, or its claim is damaged."""
        try:
            return str(self._folder.read_json(_NAME)["token"])
        except KeyError:
            return None
        except DamagedFileError as error:
            if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, FileNotFoundError):
                raise
            return None
