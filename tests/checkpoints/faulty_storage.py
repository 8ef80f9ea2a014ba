"""A file system of fsspec that loses, tears, flips, refuses and delays, as its seed says."""

import errno
import random
import threading
import time

import fsspec
from fsspec.implementations.local import LocalFileSystem

FAULTS = ("torn", "flipped", "missing", "full", "slow", "denied")


class FaultyFileSystem(LocalFileSystem):
    """The local files, with faults. Class attributes, as fsspec makes and keeps the instances."""

    protocol = "faulty"
    cachable = False
    rng = random.Random(0)
    share = 0.0
    counts: dict[str, int] = {}  # noqa: RUF012

    @classmethod
    def begin(cls, seed: int, share: float) -> None:
        cls.rng, cls.share, cls.counts = random.Random(seed), share, {}

    @classmethod
    def _strip_protocol(cls, path):
        path = path.removeprefix("faulty://") if isinstance(path, str) else path
        return LocalFileSystem._strip_protocol(path)

    def _fault(self) -> str | None:
        if self.rng.random() >= self.share:
            return None
        fault = self.rng.choice(FAULTS)
        type(self).counts[fault] = self.counts.get(fault, 0) + 1
        return fault

    def open(self, path, mode="rb", **options):
        if "w" not in mode:
            return super().open(path, mode, **options)
        fault = self._fault()
        if fault == "full":
            raise OSError(errno.ENOSPC, "No space left on device")
        if fault == "denied":
            raise PermissionError(errno.EACCES, "Permission denied")
        if fault == "slow":
            time.sleep(0.01)
        return _Damaging(super().open(path, mode, **options), self, self._strip_protocol(path), fault)


class HangingFileSystem(LocalFileSystem):
    """The local files; writes wait while `hangs` is set."""

    protocol = "hanging"
    cachable = False
    hangs = threading.Event()
    goes_on = threading.Event()

    @classmethod
    def _strip_protocol(cls, path):
        path = path.removeprefix("hanging://") if isinstance(path, str) else path
        return LocalFileSystem._strip_protocol(path)

    def open(self, path, mode="rb", **options):
        if "w" in mode and self.hangs.is_set():
            self.goes_on.wait(30.0)
        return super().open(path, mode, **options)


class _Damaging:
    """A file that is damaged when it is closed."""

    def __init__(self, file, files, path, fault):
        self._file, self._files, self._path, self._fault = file, files, path, fault

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        self._file.close()
        with open(self._path, "r+b") as file:
            content = bytearray(file.read())
            rng = self._files.rng
            if self._fault == "torn":
                file.truncate(rng.randrange(len(content) + 1))
            elif self._fault == "flipped" and content:
                place = rng.randrange(len(content))
                content[place] ^= 1 << rng.randrange(8)
                file.seek(0)
                file.write(content)
        if self._fault == "missing":
            self._files.rm_file(self._path)


fsspec.register_implementation("hanging", HangingFileSystem, clobber=True)
fsspec.register_implementation("faulty", FaultyFileSystem, clobber=True)
