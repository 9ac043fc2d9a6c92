"""Promised bytes beside measured ones, for each kind of program of tools/bench/pytorch_promises."""

import importlib.machinery
import importlib.util
import shutil
import sys
import tempfile
import unittest

from pytorch_case import ROOT, PyTorchCase

BENCH = ROOT / "tools" / "bench"
TOLD = {  # of which no budget is kept, and what the program must hear
    "lstm": "recurrent.weight_ih_l0.* run outside of the graphs",
    "break in a loop": "Dynamo captures nothing of the model .TORCH_LOGS=graph_breaks",
    "item midway": "the model has several graphs, and a plan is of one",
    "compiled function": "Dynamo captures nothing of the model",
    "threads": "or in another thread beside it",
    "inside a profiler": "make the first call of each size outside of it",
    "sparse gradients": "is a sparse tensor; use dense gradients",
    "own hooks": "hooks on saved tensors are around the call",
    "retained graph": "retain_graph=True.* keeps what the plan lets go",
    "copied model": "a copy of a compiled one.*compile.backend=\"spillway\". of the copy",
}


def tool():
    """The script as a module."""
    sys.path.append(str(BENCH))
    loader = importlib.machinery.SourceFileLoader("pytorch_promises",
                                                  str(BENCH / "pytorch_promises"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


@unittest.skipIf(shutil.which("cc") is None, "there is no C compiler")
class Promises(PyTorchCase):
    def test_none_is_broken_in_silence(self):
        script = tool()
        with tempfile.TemporaryDirectory() as folder:
            rows = script.measure(sys.executable, None, folder)
        from pytorch_programs import PROGRAMS  # pylint: disable=import-outside-toplevel
        self.assertEqual(set(rows), set(PROGRAMS))
        self.assertLessEqual(set(TOLD), set(rows))
        for name, row in rows.items():
            with self.subTest(name):
                self.assertTrue(row["bits"])
                told = " ".join(row["told"])
                if name in TOLD:
                    self.assertRegex(told, f"no budget is kept: .*{TOLD[name]}")
                else:
                    self.assertNotIn("no budget is kept", told)
                    self.assertLessEqual(row["measured"], row["promised"])
                    self.assertGreater(row["measured"], row["promised"] // 2)


if __name__ == "__main__":
    unittest.main()
