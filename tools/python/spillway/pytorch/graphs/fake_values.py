"""What PyTorch's fake kernels say of results, mended where its real ones do otherwise."""

import operator

import torch


def correct(graph):
    """Statistics that batch norm saves of a bfloat16 batch are float where its parameters are: the
    fake kernel has them in bfloat16."""
    for node in graph.nodes:
        if node.op == "call_function" and is_batch_norm(node):
            mend(node)


def is_batch_norm(node):
    """A forward one."""
    name = str(node.target)
    return "batch_norm" in name and "backward" not in name and len(node.args) > 1


def mend(node):
    """The dtypes of one, and of what takes its results apart."""
    weight, values = node.args[1], node.meta.get("val")
    if not isinstance(weight, torch.fx.Node) or not isinstance(values, (tuple, list)):
        return
    dtype = weight.meta["val"].dtype
    node.meta["val"] = type(values)(
        value.to(dtype) if number > 0 and isinstance(value, torch.Tensor) and is_reduced(value)
        else value for number, value in enumerate(values))
    for user in node.users:
        if user.target is operator.getitem:
            user.meta["val"] = node.meta["val"][user.args[1]]


def is_reduced(value):
    return value.dtype in (torch.bfloat16, torch.float16)
