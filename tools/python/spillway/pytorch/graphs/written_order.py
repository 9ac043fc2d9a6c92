"""Runs a graph as it is written."""

from torch import fx
from torch.fx.graph import _BoxedCodeGen


def in_written_order(module, inputs, before, after=lambda results: None):
    """A graph's nodes one after another, by PyTorch's own kernels; operands go when they were used
    last. `before` is called as a run begins, `after` with its results."""
    del inputs
    module = fx.GraphModule(module, module.graph)
    module.graph.set_codegen(_BoxedCodeGen())
    module.recompile()
    forward = module.forward

    def run(args):
        before()
        results = forward(args)
        after(results)
        return results

    run._boxed_call = True
    return run
