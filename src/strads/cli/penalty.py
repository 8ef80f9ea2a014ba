"""Strength of a penalty, as options give it."""

from dataclasses import dataclass
from typing import Self

from strads.cli.train_linear_options import RATIO, STEPS
from strads.errors import ArgumentError


@dataclass(frozen=True)
class Penalty:
    """Strength of the penalty, given by exactly one of the parameters.

    Parameters
    ----------
    value : float or None
        alpha or C.
    share : float or None
        Fraction of the strength at which all coefficients are 0.
    steps : int or None
        Number of strengths, from there downwards.
    folds : int or None
        Number of folds, if one of these strengths is chosen by cross-validation.
    """

    value: float | None = None
    share: float | None = None
    steps: int | None = None
    folds: int | None = None

    @classmethod
    def of(cls, *, alpha_ratio: float | None, path: int | None, cv: int | None, **value: float | None) -> Self:
        """Return the penalty that options give: at most one of them and of `alpha` or `C`; by default a tenth.

        Raises
        ------
        ArgumentError
            For several; the message names them.
        """
        given = {**value, "alpha_ratio": alpha_ratio, "path": path}
        options = ["--" + name.replace("_", "-") for name, value in given.items() if value is not None]
        if len(options) > 1:
            raise ArgumentError(f"{' and '.join(options)} both say how strong the penalty is: give one of them")
        if cv is not None:
            if options and path is None:
                raise ArgumentError(f"--cv chooses how strong the penalty is: leave out {options[0]}")
            return cls(None, None, path or STEPS, cv)
        (strength,) = value.values()
        return cls(strength, alpha_ratio if options else RATIO, path)
