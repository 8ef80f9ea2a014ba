"""Our classes with the constructors of their peers.

Options of a peer that choose among its algorithms, or how many threads it takes, are accepted and have no effect; all
others have the meaning that they have in the peer.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

Options = dict[str, Any]


def adapted(ours: type, peer: type, translate: Callable[[Options], Mapping[str, Any]]) -> type:
    """Return a class of ours whose constructor is that of a peer.

    Parameters
    ----------
    ours, peer
        The classes.
    translate
        From the options of the peer to those of ours with the same name and another meaning; for the time of a fit.
    """
    signature, known = inspect.signature(peer), inspect.signature(ours).parameters
    of_fit = inspect.signature(ours.fit).parameters

    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        bound = signature.bind(*args, **keywords)
        bound.apply_defaults()
        ours.__init__(self, **{name: value for name, value in bound.arguments.items() if name in known})
        for name, value in bound.arguments.items():
            setattr(self, name, value)

    __init__.__signature__ = inspect.signature(peer.__init__)  # type: ignore[attr-defined]

    def fit(self: Any, *args: Any, **keywords: Any) -> Any:
        given = {name: getattr(self, name) for name in signature.parameters}
        meant = dict(translate(given))
        before = {name: getattr(self, name) for name in meant}
        for name, value in meant.items():
            setattr(self, name, value)
        try:
            return ours.fit(self, *args, **{name: value for name, value in keywords.items() if name in of_fit})
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    fit.__signature__ = inspect.signature(ours.fit)  # type: ignore[attr-defined]
    contents = {"__init__": __init__, "fit": fit, "__doc__": ours.__doc__, "__module__": __name__}
    adapter: type = type(peer.__name__, (ours,), contents)
    adapter.__qualname__ = f"{peer.__module__}_{peer.__name__}".replace(".", "_")  # where pickle finds it
    globals()[adapter.__qualname__] = adapter
    return adapter
