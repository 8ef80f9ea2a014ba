"""Why a loop runs in its order, as one job."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SequentialReason:
    """The `reason` why a loop has to run as one job; `lasts`: it also holds in later calls, and with more threads."""

    reason: str
    lasts: bool = True


ONE_THREAD = SequentialReason("one thread would follow its order with any plan", lasts=False)
FIRST_CALL = SequentialReason(
    "planning would take longer than this first call; a second call makes a plan", lasts=False
)
CHANGING = SequentialReason(
    "its rows or indices change from call to call, and a plan for one call would not pay", lasts=False
)
BEFORE_SAMPLING = SequentialReason(
    "values that the loop writes choose its rows: the second call samples whether these stay the same", lasts=False
)
SAMPLING_CALL = SequentialReason(
    "this call samples whether the rows stay the same; if so, the next one makes a plan", lasts=False
)
TOO_EARLY = SequentialReason(
    "an index or key is out of range in reconnaissance, but may be valid once earlier tasks have run"
)
TOO_MANY = SequentialReason("records of its many accesses would take much more memory and time than the loop itself")
ALL_ROWS = SequentialReason("its order matters, and rng.near draws from all rows")
LEFT_ROWS = SequentialReason("values that it writes choose its rows, and these have changed")
RAN_IN_SEQUENCE = SequentialReason("its rows have changed, and it already ran in sequence before")
