"""Amounts of memory as people write them."""

import unittest

import importing
from spillway_um.sizes import byte_count, size_text


class ByteCount(unittest.TestCase):
    def test_reads_what_the_library_reads(self):
        for text, count in {"4096": 4096, "512MiB": 512 << 20, "1.5 GiB": 3 << 29,
                            "40GB": 40 * 10**9, " 2 KiB ": 2048, "7B": 7, "6G": 6 << 30,
                            "2g": 2 << 30, "64k": 64 << 10,
                            "1.5 M": 3 << 19}.items():
            self.assertEqual(byte_count(text), count)
        self.assertEqual(byte_count(0), 0)

    def test_refuses_what_is_no_amount_and_says_what_is(self):
        for wrong in ("64Gib", "", "GiB", "-1", -1, 1.5, None, True, "1 2MiB", "0.6",
                      "1.5B"):
            with self.assertRaisesRegex(ValueError, "give a number of bytes, or \"2GiB\", say"):
                byte_count(wrong)


class SizeText(unittest.TestCase):
    def test_takes_the_largest_unit_that_fits(self):
        self.assertEqual([size_text(n) for n in (3, 1536, 1 << 20, 5 << 29)],
                         ["3 B", "1.50 KiB", "1.00 MiB", "2.50 GiB"])
