"""Backend `ray`."""
