"""The graphs that plans become: whatever has left is brought back before it is used."""

import unittest

from pytorch_case import (Attention, Convolutions, PyTorchCase, image_step, text_step, torch)
from spillway.pytorch.far.operators import PREFETCH, STORE, WAIT


def storage_owner(node):
    """The node whose memory a view shows."""
    while node.op == "call_function" and node.all_input_nodes and is_view(node):
        node = node.all_input_nodes[0]
    return node


def is_view(node):
    value, operand = node.meta.get("val"), node.all_input_nodes[0].meta.get("val")
    if not isinstance(value, torch.Tensor) or not isinstance(operand, torch.Tensor):
        return False
    if node.target in (STORE, WAIT):
        return False
    return value.untyped_storage()._cdata == operand.untyped_storage()._cdata


class Graphs(PyTorchCase):
    def written(self, kind, step_of):
        """Forward and backward graph of the smallest budget, by moves and by recomputation."""
        for recompute in (False, True):
            torch._dynamo.reset()
            model = self.made(kind)
            call = torch.compile(model, backend="spillway", options={
                "budget": "min", "recompute": recompute})
            step_of(model)(call).backward()
            plan, = self.plans_of(model)
            yield plan, plan.written

    def expect_reloaded(self, graph):
        """Nothing that was stored is used later, and only moves touch far memory."""
        places = {node: place for place, node in enumerate(graph.nodes)}
        far = set()
        for node in graph.nodes:
            if node.target == STORE:
                far.add(node)
                for other in graph.nodes:
                    if storage_owner(other) is storage_owner(node.args[0]) and other is not node:
                        uses = [u for u in other.users if u.op != "output"]
                        late = [u for u in uses if places[u] > places[node]]
                        self.assertEqual(late, [], f"{other} has left by {node}")
            if node.target in (WAIT, PREFETCH):
                self.assertTrue(node.args[0] in far or node.args[0].op == "placeholder", node)
        for node in far:
            self.assertTrue({u.target for u in node.users} <= {WAIT, PREFETCH, "output"}, node)

    def test_what_has_left_is_brought_back_before_it_is_used(self):
        for kind, step_of in ((Attention, text_step), (Convolutions, image_step)):
            for plan, graphs in self.written(kind, step_of):
                for module in graphs:
                    module.graph.lint()
                    self.expect_reloaded(module.graph)
                moves = sum(n.target == STORE for m in graphs for n in m.graph.nodes)
                self.assertEqual(moves, sum(not m.get("clean")
                                            for m in plan.planned.plan["offloads"]))

    def test_random_operators_run_once(self):
        for _, graphs in self.written(Attention, text_step):
            random = [n for m in graphs for n in m.graph.nodes if n.op == "call_function"
                      and torch.Tag.nondeterministic_seeded in getattr(n.target, "tags", ())]
            names = [n.name for n in random]
            self.assertTrue(names)
            self.assertEqual(len(names), len({str(n.args) for n in random}), names)


if __name__ == "__main__":
    unittest.main()
