"""A team of threads that runs one function on each of its members."""

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait


class ThreadTeam:
    """Threads that stay alive between calls. The calling thread only waits, so it can be interrupted."""

    def __init__(self, size: int):
        self.size = size
        self._member = threading.local()
        self._submitting = threading.Lock()
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="strads", initializer=self._enter)

    def _enter(self) -> None:
        self._member.yes = True

    def run(self, function: Callable[[int], None], *, on_interrupt: Callable[[], None] = lambda: None) -> None:
        """Call `function(thread)` on every thread and wait for all.

        Parameters
        ----------
        function
            Called with the number of the thread, from 0.
        on_interrupt
            Called once when this wait is interrupted (Ctrl-C) or a thread has failed: it has to make the
            function return soon.

        Raises
        ------
        The first exception of a thread, after all have ended.
        """
        with self._submitting:  # all of one call before any of another, which may wait for each other (barriers)
            futures = [self._pool.submit(function, thread) for thread in range(self.size)]
        try:
            _, running = wait(futures, return_when=FIRST_EXCEPTION)
            if running:
                on_interrupt()
        except BaseException:
            on_interrupt()
            _wait_for_all(futures)
            raise
        _raise_first(futures)

    def for_each(self, function: Callable[[int], None], count: int) -> None:
        """Call `function(i)` for i in 0..count-1; each thread takes the next number when it is free.

        A member of the team that calls this does all itself: to wait for the others might be to wait for itself.
        """
        if getattr(self._member, "yes", False):
            for number in range(count):
                function(number)
            return
        futures = [self._pool.submit(function, number) for number in range(count)]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            for future in futures:
                future.cancel()
            wait(futures)
        _raise_first(futures)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def _wait_for_all(futures: list[Future[None]]) -> None:
    """Wait also through further interrupts: who gets control back may rely on no thread being at work."""
    while True:
        try:
            wait(futures)
            return
        except KeyboardInterrupt:
            continue


def _raise_first(futures: list[Future[None]]) -> None:
    wait(futures)
    for future in futures:
        if not future.cancelled() and (error := future.exception()) is not None:
            raise error
