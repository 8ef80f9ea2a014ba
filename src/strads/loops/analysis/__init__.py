"""What a loop body does with its tables, read off its bytecode before it runs (DESIGN §4.3)."""

from strads.loops.analysis.body import BodyAnalysis, analyse_body
from strads.loops.analysis.kinds import TableKind

__all__ = ["BodyAnalysis", "TableKind", "analyse_body"]
