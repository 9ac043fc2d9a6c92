"""The order in which streams and events let the emulated GPU work changes no bit."""

import unittest

from emulated_runs import profile, train, words

ORDERS = [{"order": order} for order in ("late", "moves", "compute", "all")]
ORDERS += [{"order": "chance", "seed": seed} for seed in (1, 2, 3)]
NETWORKS = {
    "lenet": "--net lenet --batch 96",
    "gpt": "--net gpt:2,2,64,64 --vocabulary 64 --batch 8 --optimizer adam --clip-norm 1",
}
WAYS = {
    "managed": "--memory managed --budget min+30% --recompute off",
    "managed_with_discards": "--memory managed --budget min+30% --recompute off --discard on",
    "copy": "--memory copy --budget min+30% --recompute off",
    "copy_without_graph": "--memory copy --budget min+30% --recompute off --graph off",
    "far_updates": "--memory managed --budget min+30% --recompute off --state far --update far",
}


class Orders(unittest.TestCase):
    """One test a network and a way to move its data; made below."""

    def train_in_each_order(self, net, way):
        flags = words(net, way, "--steps 5 --lr 0.01 --profile", profile(*words(net)))
        eager = train(flags, card={"order": "eager", "races": "on"})
        self.assertEqual(eager.status, 0, eager.story())
        self.assertGreater(eager.summary["bytes_offloaded"], 0, eager.story())
        for card in ORDERS:
            run = train(flags, card=card)
            self.assertEqual((run.status, run.bits()), (0, eager.bits()), run.story())


def test_of(net, way):
    return lambda self: self.train_in_each_order(net, way)


for of_net, each_net in NETWORKS.items():
    for of_way, each_way in WAYS.items():
        setattr(Orders, f"test_{of_net}_{of_way}", test_of(each_net, each_way))


if __name__ == "__main__":
    unittest.main()
