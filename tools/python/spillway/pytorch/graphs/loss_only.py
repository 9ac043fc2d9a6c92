"""Graphs that return a loss and more: the plan has gradients of the loss alone.

autograd would make zeros for each other result, as large as it is, and the step would add them.
Programs that differentiate such a result all the same get its gradient by running the model again.
"""

import functools

import torch
from torch import fx

REASON = ("the program differentiates more than the loss that the model returns; this step runs "
          "the model again for that, and later ones are planned with all results")


def results_beside_loss(module):
    """Places among a graph's results of those that are no number; none where none is one."""
    values = [node.meta.get("example_value") if isinstance(node, fx.Node) else None
              for node in module.graph.output_node().args[0]]
    wanted = [i for i, v in enumerate(values) if isinstance(v, torch.Tensor) and v.requires_grad]
    others = [i for i in wanted if values[i].numel() != 1]
    return others if len(others) < len(wanted) else []


def without_gradients(module, places):
    """The graph module with these results detached."""
    graph = fx.Graph()
    results = list(graph.graph_copy(module.graph, {}))
    for place in places:
        results[place] = graph.call_method("detach", (results[place],))
    graph.output(tuple(results))
    return fx.GraphModule(module, graph)


class LossOnly:
    """Runs `compiled`, made of without_gradients(), behind one gate for the gradients of all
    results: where more than the loss has one, the whole model runs again by `again(args)`, and all
    gradients go back through it together, as eager's do."""

    def __init__(self, compiled, places, again):
        self.compiled, self.places, self.again = compiled, places, again

    def __call__(self, *args):
        state, autocast = torch.get_rng_state(), autocast_now()
        results = list(self.compiled(*args))
        inputs = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
        gated = [place for place, result in enumerate(results) if place in self.places
                 or isinstance(result, torch.Tensor) and result.requires_grad]

        def gradients(given):
            with autocast():
                return self.gradients(args, inputs, state, gated, given)

        unplanned = [gated.index(place) for place in self.places]
        through = Gate.apply(gradients, unplanned, len(gated), *[results[p] for p in gated],
                             *inputs)
        for place, result in zip(gated, through, strict=True):
            results[place] = result
        return results

    def gradients(self, args, inputs, state, places, given):
        """Of the results at `places`, for all inputs, with the random numbers of the first run."""
        before = [(a, a.clone()) for a in args
                  if isinstance(a, torch.Tensor) and not a.requires_grad]
        with torch.enable_grad(), torch.random.fork_rng(devices=[]):
            torch.set_rng_state(state)
            again = self.again(args)
            results = [again[place] for place in places]
        pairs = [(r, g) for r, g in zip(results, given, strict=True) if g is not None]
        found = torch.autograd.grad([r for r, _ in pairs], inputs, [g for _, g in pairs],
                                    allow_unused=True)
        for changed, value in before:  # running statistics were updated once already
            if not torch.equal(changed, value):
                changed.copy_(value)
        return found


def autocast_now():
    """Makes the context that is entered now, for later."""
    return functools.partial(torch.autocast, "cpu", torch.get_autocast_dtype("cpu"),
                             torch.is_autocast_enabled("cpu"), torch.is_autocast_cache_enabled())


class Gate(torch.autograd.Function):
    """The first `count` of `tensors` as they are. Their gradients pass, unless one of those at
    `unplanned` has one: then the other tensors get gradients(all of them)."""

    @staticmethod
    def forward(ctx, gradients, unplanned, count, *tensors):
        ctx.set_materialize_grads(False)
        ctx.gradients, ctx.unplanned = gradients, unplanned
        ctx.others = len(tensors) - count
        return tuple(result.clone() if result.numel() == 1 else result.view_as(result)
                     for result in tensors[:count])  # a program may scale its loss in place

    @staticmethod
    def backward(ctx, *given):
        if all(given[place] is None for place in ctx.unplanned):
            return None, None, None, *given, *[None] * ctx.others
        return None, None, None, *[None] * len(given), *ctx.gradients(given)
