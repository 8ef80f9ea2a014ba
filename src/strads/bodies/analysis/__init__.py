"""Static analysis of how a loop body accesses its tables, from Numba's IR (decision 17)."""

from strads.bodies.analysis.facts import BodyAnalysis
from strads.bodies.analysis.kinds import Field, TableKind
from strads.bodies.analysis.whole_body import analyse_body

__all__ = ["BodyAnalysis", "Field", "TableKind", "analyse_body"]
