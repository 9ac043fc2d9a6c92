"""What tools/bench/suite keeps after Ctrl-C."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import suite_goals_test

SUITE = suite_goals_test.TOOLS / "suite"
PROGRAM = """#!{python}
import json, pathlib, signal, sys

def stop(*_):
    print(json.dumps({{"points": {points}}}))
    sys.exit(130)

signal.signal(signal.SIGINT, stop)
pathlib.Path("begun").touch()
signal.pause()
"""


class SuiteAfterCtrlC(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def interrupted(self, points):
        """The points of a suite whose first sweep has reached `points`."""
        program = self.folder / "spillway"
        program.write_text(PROGRAM.format(python=sys.executable, points=points), encoding="utf-8")
        program.chmod(0o755)
        suite = subprocess.Popen(
            [sys.executable, "-B", SUITE, "--networks", "vgg16", "--machines", "v100", "--program",
             program, "--json", "suite.json"], cwd=self.folder, stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL, text=True, start_new_session=True)
        deadline = time.monotonic() + 30
        while not (self.folder / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(suite.pid, signal.SIGINT)  # as a terminal does
        errors = suite.communicate(timeout=30)[1]
        self.assertEqual(suite.returncode, 130, errors)
        self.assertIn("interrupted; points that were not reached are left out", errors)
        self.assertNotIn("Traceback", errors)
        return json.loads((self.folder / "suite.json").read_text(encoding="utf-8"))["points"]

    def test_the_points_of_the_sweep_under_way_are_kept(self):
        kept = self.interrupted([suite_goals_test.point_at(0, 115)])
        self.assertEqual([point["p"] for point in kept], [0])

    def test_there_may_be_none(self):
        self.assertEqual(self.interrupted([]), [])


if __name__ == "__main__":
    unittest.main()
