"""Checkpoints: a program that ends early continues where it was (thesis §7.2.3, decision 33).

`operators` describes a step of a program; `session` skips or runs it; `journal` and `manifests` are what lies in the
folder, in the files of `storage`; `trees` turns state into JSON and arrays; `staging`, `snapshots` and `on_nodes`
write it in the background.
"""

from strads.checkpoints.active import (
    checkpoint,
    current_session,
    forget,
    has_session,
    learned_data,
    observe,
    perform,
    preparing,
    record,
    running_session,
)
from strads.checkpoints.digests import digest
from strads.checkpoints.memory import is_shared
from strads.checkpoints.on_nodes import LoadTicket, SaveTicket, loading, saving
from strads.checkpoints.operators import Data, Operator
from strads.checkpoints.re_execution import SessionLoad
from strads.checkpoints.row_sums import RowSum, row_sum, total_row_sum
from strads.checkpoints.session import Session
from strads.checkpoints.snapshots import Counters, SnapshotSave
from strads.checkpoints.trees import Load, Save, Tree

__all__ = [
    "Counters",
    "Data",
    "Load",
    "LoadTicket",
    "Operator",
    "RowSum",
    "Save",
    "SaveTicket",
    "Session",
    "SessionLoad",
    "SnapshotSave",
    "Tree",
    "checkpoint",
    "current_session",
    "digest",
    "forget",
    "has_session",
    "is_shared",
    "learned_data",
    "loading",
    "observe",
    "perform",
    "preparing",
    "record",
    "row_sum",
    "running_session",
    "saving",
    "total_row_sum",
]
