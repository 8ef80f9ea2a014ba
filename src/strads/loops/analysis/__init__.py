"""What a loop body does with its tables, proven from Numba's IR before it runs (DESIGN §4.3)."""

from strads.loops.analysis.body import BodyAnalysis, analyse_body
from strads.loops.analysis.kinds import Field, TableKind

__all__ = ["BodyAnalysis", "Field", "TableKind", "analyse_body"]
