"""What PyTorch's fake kernels say of results, mended where its real ones do otherwise."""

import operator

import torch
from torch import fx

NORMS = "batch_norm", "layer_norm", "group_norm"


def correct(graph):
    """Statistics that norms save of a bfloat16 batch are float where a parameter or a running
    statistic is, as under autocast: the fake kernels have them in bfloat16."""
    for node in graph.nodes:
        if node.op == "call_function" and is_norm(node) and has_mixed_operands(node):
            mend(node)


def is_norm(node):
    """A forward one with statistics."""
    name = str(node.target)
    return (any(norm in name for norm in NORMS) and "backward" not in name
            and isinstance(node.meta.get("val"), (tuple, list)))


def has_mixed_operands(node):
    """A reduced batch beside something in float."""
    values = [n.meta["val"] for n in node.all_input_nodes
              if isinstance(n.meta.get("val"), torch.Tensor)]
    return is_reduced(values[0]) and any(v.dtype == torch.float32 for v in values[1:])


def mend(node):
    """The dtypes of one, and of what takes its results apart."""
    values = node.meta["val"]
    node.meta["val"] = type(values)(
        value.to(torch.float32) if number > 0 and isinstance(value, torch.Tensor)
        and is_reduced(value) else value for number, value in enumerate(values))
    for user in node.users:
        if user.target is operator.getitem:
            user.meta["val"] = node.meta["val"][user.args[1]]
            mend_views(user)


def mend_views(node):
    """What shows the memory of a mended value, likewise."""
    for user in node.users:
        if getattr(user.target, "is_view", False) and user.all_input_nodes == [node]:
            args, kwargs = fx.map_arg((user.args, user.kwargs), lambda n: n.meta["val"])
            with node.meta["val"].fake_mode:
                user.meta["val"] = user.target(*args, **kwargs)
            mend_views(user)


def is_reduced(value):
    return value.dtype in (torch.bfloat16, torch.float16)
