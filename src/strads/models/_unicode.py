"""Texts that UTF-8 cannot represent: those with half of a surrogate pair, as a careless decoding leaves them."""

LONE_SURROGATE = 'it has a lone surrogate, which text.encode("utf-8", "replace").decode() replaces'
