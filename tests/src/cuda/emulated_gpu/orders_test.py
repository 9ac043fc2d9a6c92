"""The order in which streams and events let the emulated GPU work changes no bit."""

import unittest

from emulated_runs import network_file, profile, train, words
from families import WIDE

ORDERS = [{"order": order} for order in ("late", "moves", "compute")]
ORDERS += [{"order": "chance", "seed": 1}]
NETWORKS = {
    "lenet": lambda: "--net lenet --batch 96",
    "llama": lambda: ("--net llama:2,2,1,32,1024,32 --vocabulary 64 --batch 4 --optimizer adam "
                      "--clip-norm 1"),
    "wide": lambda: words("--net", network_file(WIDE), "--batch 64"),
}
PLANNED = "--budget min+30% --recompute off"
WAYS = {
    "lenet_with_discards": ("lenet", "--memory managed --discard on"),
    "lenet_by_copies": ("lenet", "--memory copy"),
    "lenet_without_graph": ("lenet", "--memory copy --graph off"),
    "llama_with_discards": ("llama", "--memory managed --discard on"),
    "llama_without_graph": ("llama", "--memory copy --graph off"),
    "far_updates": ("wide", "--memory managed --state far --update far"),
}
RACED = ["lenet_with_discards", "lenet_without_graph"]  # races are looked for, which takes longer


class Orders(unittest.TestCase):
    """One test for each of WAYS; made below."""

    def train_in_each_order(self, net, way, is_raced):
        flags = words(net, way, PLANNED, "--steps 3 --lr 0.01")
        if "--update far" not in way:  # whose profile is of another graph
            flags += words("--profile", profile(*net))
        eager = train(flags, card={"order": "eager", "races": "on" if is_raced else "off"})
        self.assertEqual(eager.status, 0, eager.story())
        self.assertGreater(eager.summary["bytes_offloaded"], 0, eager.story())
        for card in ORDERS:
            run = train(flags, card=card)
            self.assertEqual((run.status, run.bits()), (0, eager.bits()), run.story())


def test_of(net, way, is_raced):
    return lambda self: self.train_in_each_order(words(NETWORKS[net]()), way, is_raced)


for name, (of_net, each_way) in WAYS.items():
    setattr(Orders, f"test_{name}", test_of(of_net, each_way, name in RACED))


if __name__ == "__main__":
    unittest.main()
