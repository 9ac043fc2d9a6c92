"""Attention over grouped keys and values, as eager PyTorch runs it.

While Dynamo traces, transformers keep a causal mask that eager code leaves out, and then repeat
keys and values for all heads, where eager code lets the kernel do so: gradients of other last bits.
"""

import operator

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

ATTENTION = torch.nn.functional.scaled_dot_product_attention
SOURCE = "transformers/integrations/sdpa_attention.py"


def as_eager(module):
    """The graph module, with attention under no more than a causal mask as eager code has it. A
    mask that depends on an input, as with padding, stays: eager code repeats beside it, too."""
    masks = {}  # whether they are causal
    found = [node for node in module.graph.nodes if is_of_transformers(node)]
    for node in found:
        mask, key, value = node.kwargs.get("attn_mask"), *map(unrepeated, node.args[1:3])
        if None in (mask, key, value):
            continue
        if mask not in masks:
            masks[mask] = is_causal(mask, module)
        if masks[mask]:
            node.args = node.args[0], key, value, *node.args[3:]
            node.kwargs = {**node.kwargs, "attn_mask": None, "is_causal": True, "enable_gqa": True}
    if any(masks.values()):
        module.graph.eliminate_dead_code()
        module.recompile()
    return module


def is_of_transformers(node):
    """Whether it is a call of attention without dropout by the library's own function."""
    return (node.op == "call_function" and node.target is ATTENTION and len(node.args) == 3
            and SOURCE in (node.meta.get("stack_trace") or "")
            and not node.kwargs.get("dropout_p") and not node.kwargs.get("is_causal"))


def unrepeated(node):
    """What repeat_kv() repeats: x[:, :, None, :, :].expand(...).reshape(...); else None."""
    for target in ("reshape", "expand"):
        if not isinstance(node, fx.Node) or (node.op, node.target) != ("call_method", target):
            return None
        node = node.args[0]
    is_widened = isinstance(node, fx.Node) and node.target is operator.getitem and (
        isinstance(node.args[1], tuple) and node.args[1][2:3] == (None,))
    return node.args[0] if is_widened else None


def is_causal(mask, module):
    """Whether a mask depends on no input, and hides from each place all later ones and no other."""
    needed, waiting = [], [mask]
    while waiting:
        node = waiting.pop()
        if node.op in ("placeholder", "get_attr"):
            return False
        needed.append(node)
        waiting += node.all_input_nodes
    values = {}
    with unset_fake_temporarily(), torch.no_grad():
        for node in module.graph.nodes:
            if node in needed:
                args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
                values[node] = (getattr(args[0], node.target)(*args[1:], **kwargs)
                                if node.op == "call_method" else node.target(*args, **kwargs))
        found = values[mask]
        return found.dtype == torch.bool and found.shape[-1] == found.shape[-2] and torch.equal(
            found, torch.ones_like(found).tril())
