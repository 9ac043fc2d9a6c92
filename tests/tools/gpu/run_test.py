"""tools/gpu/run from outside, with a pack of programs that only pretend."""

import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = HERE.parents[2] / "tools" / "gpu"


def executable(info):
    info.mode = 0o755
    return info


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"
        shutil.copytree(TOOLS, self.root / "tools" / "gpu")
        self.pack(cuda_libraries=[])

    def pack(self, **changes):
        archive = self.root / "build" / "gpu" / "spillway-gpu.tar.gz"
        archive.parent.mkdir(parents=True, exist_ok=True)
        manifest = {"commit": "c0ffee", "source_root": str(self.root), "tests": [], **changes}
        (self.root / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(self.root / "manifest.json", arcname="manifest.json")
            for name in ("spillway", "driver_facts", "card_properties", "engine_times"):
                tar.add(HERE / "fake_spillway.py", arcname=f"bin/{name}", filter=executable)

    def run_stages(self, *words, fake=""):
        environment = {**os.environ, "FAKE": fake, "OUT": str(self.root / "out")}
        return subprocess.run([self.root / "tools" / "gpu" / "run", *words], env=environment,
                              capture_output=True, text=True, check=False)

    def result(self, stage):
        return json.loads((self.root / "out" / f"{stage}.json").read_text(encoding="utf-8"))

    def test_stops_at_once_with_a_sentence_where_there_is_no_gpu(self):
        done = self.run_stages(fake="no-gpu")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.splitlines(), [
            f"{self.root}/tools/gpu/run: there is no usable GPU: there is no NVIDIA driver"])
        self.assertFalse((self.root / "out").exists())

    def test_stops_at_once_where_others_have_taken_the_memory(self):
        done = self.run_stages(fake="full")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.splitlines(), [
            f"{self.root}/tools/gpu/run: cuda:0 has 20.0 GiB free, and 32 are needed; wait until "
            "others have ended, or leave out engines, speed, overhead"])
        self.assertFalse((self.root / "out").exists())
        self.assertEqual(self.run_stages("--quick", "steady", fake="full").returncode, 0)

    def test_stops_with_a_sentence_where_a_library_is_missing(self):
        self.pack(cuda_libraries=["libnowhere.so.9"])
        done = self.run_stages()
        self.assertEqual(done.returncode, 1)
        self.assertIn("libnowhere.so.9 was not found", done.stderr)

    def test_writes_a_file_for_each_stage_in_their_order(self):
        done = self.run_stages("--quick", "steady", "facts")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.result("steady")["status"], "passed")
        self.assertEqual(self.result("steady")["build"]["commit"], "c0ffee")
        self.assertEqual([line["stage"] for line in self.result("summary")["stages"]],
                         ["facts", "steady"])
        self.assertEqual([line.split()[:2] for line in done.stdout.splitlines()],
                         [["stage", "status"], ["facts", "passed"], ["steady", "passed"]])

    def test_has_at_most_as_many_files_as_come_back(self):
        self.run_stages("--quick")
        self.assertEqual(sorted(path.stem for path in (self.root / "out").iterdir()),
                         ["engines", "facts", "identity", "overhead", "speed", "steady", "summary",
                          "tests"])  # eight

    def test_goes_on_after_a_stage_that_failed_and_says_so_at_the_end(self):
        done = self.run_stages("--quick", "tests", "facts", "steady", fake="managed:faults=1")
        self.assertEqual(done.returncode, 1)
        statuses = [line["status"] for line in self.result("summary")["stages"]]
        self.assertEqual(statuses, ["failed", "passed", "failed"])  # there are no tests
        self.assertEqual(self.result("steady")["steady_faults"], [1] * 4)

    def test_begins_no_stage_when_the_time_is_used_up(self):
        done = self.run_stages("--limit", "5", "facts")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not begun", self.result("facts")["reason"])

    def test_knows_its_stages(self):
        done = self.run_stages("sped")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no stage 'sped'; there are tests, facts", done.stderr)


if __name__ == "__main__":
    unittest.main()
