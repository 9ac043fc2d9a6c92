"""How tools/bench/fine_tune and from_scratch choose and judge, without a training."""

import contextlib
import io
import pathlib
import tempfile
import types
import unittest

from bench_program import tool


class FromScratch(unittest.TestCase):
    def judged(self, here, there):
        results = {"spillway": {"accuracy": here}, "pytorch": {"accuracy": there}}
        return tool("from_scratch").is_good(results)

    def test_wants_92_percent_and_half_a_percent_of_pytorch(self):
        self.assertTrue(self.judged(0.925, 0.929))
        self.assertTrue(self.judged(0.925, 0.91))
        self.assertFalse(self.judged(0.925, 0.931))
        self.assertFalse(self.judged(0.919, 0.919))

    def test_judges_one_alone(self):
        self.assertTrue(tool("from_scratch").is_good({"spillway": {"accuracy": 0.93}}))
        self.assertTrue(tool("from_scratch").is_good({"pytorch": {"accuracy": 0.93}}))


class FineTune(unittest.TestCase):
    def test_compares_as_many_images_of_each_class(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("bag", "boot", "shirt"):
                inside = pathlib.Path(folder, "after", "val", name)
                inside.mkdir(parents=True)
                for i in range(50):
                    (inside / f"{i:05}.jpg").touch()
            options = types.SimpleNamespace(out=pathlib.Path(folder))
            files = tool("fine_tune").compared_files(options)
        self.assertEqual(len(files), 100)
        self.assertEqual(len(set(files)), 100)
        counts = [sum(f"/{name}/" in file for file in files) for name in ("bag", "boot", "shirt")]
        self.assertEqual(counts, [34, 34, 32])

    def test_a_part_that_fails_ends_it_with_its_last_words(self):
        run = tool("fine_tune").Runs(pathlib.Path("/bin/sh"))
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            with self.assertRaisesRegex(SystemExit, "training failed: no data"):
                run("training", ["/bin/sh", "-c", "echo first >&2; echo no data >&2; exit 3"])
        self.assertIn("+ sh -c ", shown.getvalue())
        self.assertEqual(run.rows, [])


if __name__ == "__main__":
    unittest.main()
