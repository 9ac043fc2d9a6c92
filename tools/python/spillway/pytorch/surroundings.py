"""What a program holds beside a graph when it is first called."""

import gc

import torch

from .graphs.step_trace import Surroundings
from .held import live_tensors, need_of_all, optimizers_of, storages


def surroundings_of(args, options):
    """The Surroundings of a call."""
    gc.collect()
    inputs = [a for a in args if isinstance(a, torch.Tensor)]
    parameters = [a for a in inputs if a.is_leaf and a.requires_grad]
    live = storages(live_tensors("cpu"))
    for key in storages(inputs):
        live.pop(key, None)
    need = need_of_all(options.optimizers or optimizers_of(parameters))
    return Surroundings(sum(live.values()) + need.state, need.update)
