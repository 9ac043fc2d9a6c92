"""What `torch.compile(..., options=...)` and spillway.budget() understand."""

import difflib
import os
import weakref

import torch

from ..library import Error
from ..planning import budget_bytes

DEFAULTS = {
    "budget": "60%",  # peak bytes of all tensors alive in a step
    "far": None,  # a folder for far memory; None: other RAM
    "optimizer": None,  # or several; None: looked for among the program's objects
    "planner": "joint",
    "recompute": True,
}
EXAMPLES = {"planner": "the name of a planner, such as \"joint\"", "recompute": "True or False"}


class Options:
    """Checked options, with defaults. Throws: Error, ValueError, each with one sentence."""

    def __init__(self, given=None):
        for name in given or {}:
            if name not in DEFAULTS:
                raise Error(f"there is no option {name!r}{nearest(name)}; there are "
                            f"{', '.join(DEFAULTS)}")
        for name, default in DEFAULTS.items():
            setattr(self, name, (given or {}).get(name, default))
        budget_bytes(self.budget, lambda: {"resident_bytes": 1, "smallest_bytes": 1})
        for name in ("planner", "recompute"):
            if not isinstance(getattr(self, name), type(DEFAULTS[name])):
                raise Error(f"{name} is {getattr(self, name)!r}; give {EXAMPLES[name]}")
        if self.far is not None and not os.path.isdir(self.far):
            raise Error(f"there is no folder {self.far} for far memory; give one that is there, or "
                        "leave far out to have it in RAM")
        self.references = references_to(self.optimizer)
        for each in self.optimizers:
            if not isinstance(each, torch.optim.Optimizer):
                raise Error(f"optimizer is a {type(each).__name__}; give the torch.optim.Optimizer "
                            "of the model, or a list of them")

    @property
    def optimizers(self):
        """Those that were given and are still there."""
        found = [r() if isinstance(r, weakref.ref) else r for r in self.references]
        return [each for each in found if each is not None]


def without_owning(given):
    """The options with weak references to optimizers: plans outlive the program's interest in a
    model otherwise, whose parameters the optimizer has."""
    if not given or given.get("optimizer") is None:
        return dict(given or {})
    return {**given, "optimizer": references_to(given["optimizer"])}


def references_to(optimizers):
    """Weak ones to optimizers; anything else as it is, to be refused."""
    several = optimizers if isinstance(optimizers, (list, tuple)) else [optimizers]
    return tuple(weakref.ref(each) if isinstance(each, torch.optim.Optimizer) else each
                 for each in several)


def nearest(name):
    """", did you mean 'budget'?" where there is one."""
    close = difflib.get_close_matches(name, DEFAULTS, 1)
    return f", did you mean {close[0]!r}?" if close else ""
