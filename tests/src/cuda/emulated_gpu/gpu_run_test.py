"""tools/gpu/run on the emulated GPU: its stages work, and a second run goes on where one failed."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from emulated_runs import PROGRAM, ROOT

WORDS = "emulated GPU, a test double: no speed is measured"
FIRST = ["facts", "trains resident", "trains copy", "trains managed", "identity", "link"]
SECOND = ["identity", "vgg16", "racecheck", "steady"]


class GpuRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name) / "found"

    def run_stages(self, stages, card="", status=0):
        words = [word for stage in stages for word in ("--stage", stage)]
        environment = {**os.environ, "SPILLWAY_EMULATED_GPU": card,
                       "SPILLWAY_EMULATED_PROGRAM": str(PROGRAM)}
        done = subprocess.run([ROOT / "tools/gpu/run", "--emulated", "--minutes", "14", "--results",
                               self.results, *words], capture_output=True, text=True, check=False,
                              env=environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertIn(f"**{WORDS}**\n", done.stdout)
        begun = re.findall("^(.*) [.]{3}$", done.stderr, re.MULTILINE)
        return done.stdout, begun

    def checks(self):
        found = json.loads((self.results / "results.json").read_text(encoding="utf-8"))
        self.assertEqual(found["emulated"], WORDS)
        return {check["name"]: check for check in found["checks"]}

    def statuses(self):
        return {name: check["status"] for name, check in self.checks().items()}

    def test_goes_on_where_a_stage_failed(self):
        table, begun = self.run_stages(FIRST, card="fail=cudaMallocManaged:1", status=1)
        passed = ["facts", "trains resident", "trains copy"]
        self.assertEqual(begun, [*passed, "trains managed", "link"])
        self.assertEqual({name: self.statuses()[name] for name in FIRST[:-1]},
                         {**dict.fromkeys(passed, "passed"), "trains managed": "failed",
                          "identity": "left out"})
        self.assertIn("| identity | it needs trains managed, which failed | |\n", table)
        for network in ("lenet", "resnet18", "gpt"):
            self.assertRegex(table, rf"\| {network} trains, copy \| loss [0-9.]+ \| ok \|")
            self.assertRegex(table, rf"\| {network} trains, managed \| .* \| FAILED \|")

        table, begun = self.run_stages([*SECOND, "link"])
        self.assertEqual(begun, ["trains managed", "identity", "steady", "link", "vgg16", "racecheck"])
        moved = [run["summary"]["bytes_offloaded"] for name, run in
                 self.checks()["identity"]["data"]["fp32"].items() if name != "resident"]
        self.assertGreater(min(moved), 0)
        left_out = dict.fromkeys(["steady", "racecheck"], "left out")
        self.assertEqual(self.statuses(), {**dict.fromkeys([*FIRST, *SECOND], "passed"), **left_out})
        self.assertIn("| runs with the resident run's bits, fp32 | 3 of 3 | ok |", table)
        for words in ("resident", "joint (managed) at min+20%", "joint (copy) at min+20%",
                      "joint (managed) at min+20%, discards on"):
            self.assertRegex(table, r"\| thin-vgg16[.]net, batch 8, " + re.escape(words)
                             + r" \| [0-9.]+ ms, ")
        self.assertRegex(table, r"\| link, copy: in / out / both at once \| [0-9.]+ / ")
        self.expect_marked_files()

    def expect_marked_files(self):
        for name in ("summary.md", "results.json", "link.json", "train-vgg16.json", "report.html"):
            self.assertIn("emulated GPU, a test double",
                          (self.results / name).read_text(encoding="utf-8"), name)
        self.assertTrue(list(self.results.glob("profile-thin-vgg16-*.json")))
        self.assertEqual(list(self.results.glob("machine-*.json")), [])

    def test_refuses_to_write_beside_results_of_real_gpus(self):
        folder = ROOT / "tools/gpu/results/emulated"
        done = subprocess.run([ROOT / "tools/gpu/run", "--emulated", "--results", folder],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("is for results of real GPUs", done.stderr)
        self.assertFalse(folder.exists())


if __name__ == "__main__":
    unittest.main()
