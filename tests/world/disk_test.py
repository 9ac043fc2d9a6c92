"""What a power cut may leave, on a disk of a few bytes."""

import pathlib
import random
import tempfile
import unittest

import disk


class Cut(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def states(self, *operations):
        """All that 200 cuts leave after these operations, as sets of (name, content)."""
        found = set()
        for seed in range(200):
            for path in self.folder.iterdir():
                path.unlink()
            (self.folder / "old").write_bytes(b"o")
            cut = disk.Disk(self.folder)
            for kind, name, *rest in operations:
                cut.apply(kind, self.folder / name if name else self.folder, *(rest or (0, b"")))
            cut.cut(random.Random(seed))
            found.add(frozenset((path.name, path.read_bytes()) for path in self.folder.iterdir()))
        return found

    def test_takes_what_was_not_flushed_or_a_part_of_it(self):
        states = self.states((b"C", "a"), (b"S", None),
                             (b"W", "a", 0, b"xy"), (b"W", "a", 2, b"z"))
        contents = {dict(state)["a"] for state in states}
        self.assertLessEqual({b"", b"x", b"xy", b"xyz", b"\0\0"}, contents)
        self.assertNotIn(b"\0\0z", contents)  # the last write alone is torn

    def test_keeps_what_was_flushed(self):
        states = self.states((b"C", "a"), (b"W", "a", 0, b"xy"), (b"S", "a"), (b"S", None))
        self.assertEqual(states, {frozenset({("old", b"o"), ("a", b"xy")})})

    def test_may_lose_a_name_whose_folder_was_not_flushed(self):
        states = self.states((b"C", "a"), (b"W", "a", 0, b"x"), (b"S", "a"))
        self.assertEqual({"a" in dict(state) for state in states}, {True, False})

    def test_renames_as_a_whole_or_not_at_all(self):
        states = self.states((b"C", "a"), (b"W", "a", 0, b"n"), (b"S", "a"), (b"S", None),
                             (b"R", "a", 0, b"/old"))
        self.assertEqual(states, {frozenset({("old", b"n")}),
                                  frozenset({("old", b"o"), ("a", b"n")})})

    def test_may_rename_before_the_content_is_there(self):
        states = self.states((b"C", "a"), (b"S", None), (b"W", "a", 0, b"n"), (b"R", "a", 0, b"old"),
                             (b"S", None))
        self.assertEqual({dict(state)["old"] for state in states}, {b"", b"n", b"\0"})

    def test_knows_which_names_are_sure(self):
        cut = disk.Disk(self.folder)
        cut.apply(b"C", self.folder / "a", 0, b"")
        self.assertFalse(cut.holds_surely("a"))
        cut.apply(b"S", self.folder, 0, b"")
        self.assertTrue(cut.holds_surely("a"))
        cut.apply(b"U", self.folder / "a", 0, b"")
        self.assertFalse(cut.holds_surely("a"))


if __name__ == "__main__":
    unittest.main()
