"""Views: the container types for which Numba compiles the same loop body (decision 1).

A *live* table is its plain array. The others are structs over arrays: `Aligned` (a table stored in plan order),
`Ragged`, `Accumulating`, `Guarded` (lets a job access only its own rows) and, for reconnaissance, `Ghost` and
`Scratch`, which log each access and return objects that the body may read and write without effect; `Elements`
are ghosts of tables that are only used as T[i, j], whose elements are logged individually.

The `fill` of a ghost is the value of all its elements. If some columns decide which rows are touched, it is the table
itself: its elements are then read as they are.
"""

from strads.engine.views.types import define_view

# Fields of the `state` array of a recording.
# Position of the current task, its stamp, which is higher than those of all tasks that the same thread has recorded
# before it, and then the number of scratch slots in use per table.
TASK, STAMP, SLOTS = 0, 1, 2

# What a task has just accessed of a table: the last row logged, whether as written, the same of the one before it, the
# last row copied, and its slot. Rows are counted from 1.
LOGGED, EARLIER, COPIED, SLOT, RECENT_SIZE = 0, 2, 4, 5, 6

# A table's tag: twice its number, plus 1 in the log for a write; `SILENT` tables (relaxed ones) are not logged.
SILENT = 128
MAX_TABLES = SILENT // 2
MAX_AXES = 4  # dimensions of a table whose elements can be told apart

AlignedType, make_aligned = define_view("Aligned", "data", "position", "rows", "checks")
SegmentedType, make_segmented = define_view("Segmented", "data", "shift", "rows", "checks")
OffsetsType, make_offsets = define_view("Offsets", "data", "position", "index", "rows")
RaggedType, make_ragged = define_view("Ragged", "values", "offsets")
AccumulatingType, make_accumulating = define_view("Accumulating", "totals", "job")
IgnoringType, make_ignoring = define_view("Ignoring", "total")
CheckedType, make_checked = define_view("Checked", "data", "checks")
GuardedType, make_guarded = define_view("Guarded", "data", "low", "high", "owner", "blocks", "holder", "checks")
_LOG = "tag", "rows", "tags", "logged", "recent", "place"  # see `recorded_rows.log_once` for the last two
GhostType, make_ghost = define_view("Ghost", "data", *_LOG, "fill")
ElementsType, make_elements = define_view("Elements", "data", *_LOG, "fill")
GhostRowType, make_ghost_row = define_view("GhostRow", "shape", "fill")
ScratchType, make_scratch = define_view("Scratch", "data", *_LOG, "state", "copies", "stamps", "slots")

RECORDING = (GhostType, ScratchType)
LIVE = (AlignedType, SegmentedType, CheckedType, GuardedType)  # `checks` (True or None) determines the compiled code
TABLES = (
    *(AlignedType, SegmentedType, OffsetsType, RaggedType, CheckedType, GuardedType),
    *(GhostType, ElementsType, ScratchType),
)
