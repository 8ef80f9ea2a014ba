"""Kinds of Arrow's types."""

import pyarrow as pa

_TEXTS = [pa.string(), pa.large_string()]
if hasattr(pa, "string_view"):  # from Arrow 16 on; Polars writes it
    _TEXTS.append(pa.string_view())


def is_text(kind: pa.DataType) -> bool:
    """Whether values of a type are texts, in any of Arrow's layouts."""
    return kind in _TEXTS
