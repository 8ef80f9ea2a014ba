"""A team of threads that runs one function on each of its members."""

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

# Teams that this thread is a member of, and those that wait for one of them.
_working_for: contextvars.ContextVar[tuple["ThreadTeam", ...]] = contextvars.ContextVar("working_for", default=())


class ThreadTeam:
    """`size` threads that stay alive between calls. The calling thread only waits, so it can be interrupted."""

    def __init__(self, size: int, name: str = "strads"):
        self.size = size
        self._submitting = threading.Lock()
        self._pool = ThreadPoolExecutor(size, thread_name_prefix=name)

    def run(
        self,
        function: Callable[[int], None],
        members: int | None = None,
        *,
        on_interrupt: Callable[[], None] = lambda: None,
    ) -> None:
        """Call `function(thread)` on some threads concurrently, and wait for all of them.

        A member of the team that calls this gets a separate team for the call, to avoid deadlock.

        Parameters
        ----------
        function
            Called with the number of the thread, from 0; sees the caller's context variables.
        members
            Number of threads, at most `size`; by default all.
        on_interrupt
            Called when this wait is interrupted (Ctrl-C) or a thread has failed, possibly more than once: it must
            make the function return soon.

        Raises
        ------
        The first exception of a thread, after all have ended.
        """
        if self in _working_for.get():
            with closing(ThreadTeam(self.size)) as team:
                team.run(function, members, on_interrupt=on_interrupt)
            return
        count = self.size if members is None else members
        call = _Call(self, function, count)
        self._carry_out(call, [call.do_one] * count, on_interrupt)

    def for_each(
        self, function: Callable[[int], None], count: int, *, on_interrupt: Callable[[], None] = lambda: None
    ) -> None:
        """Call `function(i)` for i in 0..count-1; each thread takes the next number when it is free.

        A member of the team that calls this makes all calls itself, to avoid deadlock. After an exception or an
        interrupt, no further number is taken; `on_interrupt` is as in `run`.
        """
        if self in _working_for.get():
            for number in range(count):
                function(number)
            return
        call = _Call(self, function, count)

        def stop() -> None:
            call.skip_the_rest()
            on_interrupt()

        self._carry_out(call, [call.do_all] * min(self.size, count), stop)

    def _carry_out(self, call: "_Call", items: list[Callable[[], None]], on_interrupt: Callable[[], None]) -> None:
        try:
            self._submit(items)
            call.wait(until_failure=True)
            if not call.is_over:
                on_interrupt()
                call.wait()
        except BaseException:
            self._end(call, items, on_interrupt)
            raise
        call.raise_first()

    def _submit(self, items: list[Callable[[], None]]) -> None:
        with self._submitting:  # one call's items stay together, as they may wait for each other (barriers)
            for item in items:
                self._pool.submit(item)

    def _end(self, call: "_Call", items: list[Callable[[], None]], on_interrupt: Callable[[], None]) -> None:
        """Keep waiting through further interrupts: when this returns, no thread is working any more."""
        while not call.is_over:
            try:
                on_interrupt()
                self._submit(items)  # not all may have been submitted, and those that were may wait for the rest
                call.wait()
            except KeyboardInterrupt:
                continue
            except RuntimeError:  # the team has been closed
                break
        call.forget()

    def close(self) -> None:
        """End the threads, after their queued work."""
        self._pool.shutdown(wait=True)


def is_consequence(error: BaseException | None) -> bool:
    """Whether an exception says that something was stopped because of another one: its class says so."""
    return bool(getattr(error, "is_consequence", False))


class _Call:
    """Parts 0..count-1 of one call, done by any threads."""

    def __init__(self, team: ThreadTeam, function: Callable[[int], None], count: int):
        self._team = team
        self._function = function
        self._context = contextvars.copy_context()
        self._changed = threading.Condition()
        self._count = count
        self._taken = 0
        self._ended = 0
        self._errors: dict[int, BaseException] = {}

    def do_one(self) -> None:
        """Do the next part, if any is left."""
        with self._changed:
            number = self._taken
            if number >= self._count:
                return
            self._taken += 1
        error = self._outcome(number)
        with self._changed:
            self._ended += 1
            if error is not None:
                self._errors[number] = error
            if error is not None or self.is_over:
                self._changed.notify_all()
        del error  # it refers to this frame

    def do_all(self) -> None:
        """Do parts until none is left."""
        while self._taken < self._count:
            self.do_one()

    def _outcome(self, number: int) -> BaseException | None:
        try:
            self._context.copy().run(self._be_a_member, number)
        except BaseException as error:
            return error
        return None

    def _be_a_member(self, number: int) -> None:
        _working_for.set((*_working_for.get(), self._team))
        self._function(number)

    @property
    def is_over(self) -> bool:
        """Whether all parts have been done."""
        return self._ended == self._count

    def wait(self, *, until_failure: bool = False) -> None:
        """Wait until all parts have been done, or one has failed."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_over or (until_failure and len(self._errors) > 0))

    def skip_the_rest(self) -> None:
        """Let no further part begin."""
        with self._changed:
            self._count = self._taken

    def forget(self) -> None:
        """Release the exceptions raised, which refer to this call."""
        self._errors = {}

    def raise_first(self) -> None:
        """Raise the exception of the first part that failed, but not one that another has caused."""
        if self._errors:
            error = self._errors[min(self._errors, key=lambda part: (is_consequence(self._errors[part]), part))]
            self.forget()
            try:
                raise error
            finally:
                del error  # it refers to this frame
