"""What `torch.compile(..., options=...)` and spillway.budget() understand."""

import difflib
import os

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
        if self.far is not None and not os.path.isdir(self.far):
            raise Error(f"there is no folder {self.far} for far memory; give one that is there, or "
                        "leave far out to have it in RAM")
        given = self.optimizer
        self.optimizers = list(given) if isinstance(given, (list, tuple)) else [given]
        self.optimizers = [each for each in self.optimizers if each is not None]
        for each in self.optimizers:
            if not isinstance(each, torch.optim.Optimizer):
                raise Error(f"optimizer is a {type(each).__name__}; give the torch.optim.Optimizer "
                            "of the model, or a list of them")


def nearest(name):
    """", did you mean 'budget'?" where there is one."""
    close = difflib.get_close_matches(name, DEFAULTS, 1)
    return f", did you mean {close[0]!r}?" if close else ""
