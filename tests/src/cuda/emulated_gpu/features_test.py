"""Any two features together train on the emulated GPU with the bits of the resident twin."""

import unittest

import features


class Features(unittest.TestCase):
    def test_are_covered_in_pairs(self):
        cases = features.cover()
        self.assertFalse([case for case in cases if features.is_refused(case)])
        for one in features.CHOICES:
            for other in features.CHOICES:
                met = {(case[one], case[other]) for case in cases}
                never = {(x, y) for x in features.CHOICES[one] for y in features.CHOICES[other]
                         if one != other and (x, y) not in met}
                for x, y in never:
                    self.assertTrue(features.is_refused({one: x, other: y}), (one, x, other, y))

    def test_end_with_the_bits_of_the_resident_twin(self):
        twins = {}
        for case in features.cover():
            with self.subTest(case=case):
                key = features.twin_key(case)
                if key not in twins:
                    twins[key] = features.twin(case)
                self.assertEqual(twins[key].status, 0, twins[key].story())
                run = features.run(case)
                self.assertEqual(run.status, 0, run.story())
                self.assertEqual(run.bits(), twins[key].bits(), run.story())

    def test_are_refused_in_one_sentence_otherwise(self):
        for parts, sentence in features.REFUSED:
            with self.subTest(parts=parts):
                run = features.run({**features.PLAIN, "memory": "managed", **parts})
                self.assertIn(run.status, (1, 2), run.story())
                self.assertEqual(len(run.sentences()), 1, run.story())
                self.assertRegex(run.sentences()[0], sentence)


if __name__ == "__main__":
    unittest.main()
