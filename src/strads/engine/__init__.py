"""How a plan is executed."""
