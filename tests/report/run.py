"""Runs the tests of the page of `spillway report` in headless Chromium.

Environment: SPILLWAY_PROGRAM, the program; SPILLWAY_PICTURES, a folder for screenshots (default:
none are kept). Arguments are unittest's: -k hover
"""

import pathlib
import sys
import unittest

import browser

SKIPPED = 77  # what ctest takes for a skipped test

if __name__ == "__main__":
    if not browser.is_there():
        print("skipped: there is no chromium with its chromedriver; 'tools/setup --ci' has them")
        sys.exit(SKIPPED)
    folder = str(pathlib.Path(__file__).parent)
    words = ["discover", "-v", "-s", folder, "-p", "*_test.py"]
    program = unittest.main(module=None, argv=[sys.argv[0], *words, *sys.argv[1:]], exit=False)
    is_choice = any(word.startswith("-k") for word in sys.argv[1:])
    if program.result.testsRun == 0 and not is_choice:
        sys.exit(f"no test was found in {folder}")
    sys.exit(not program.result.wasSuccessful())
