"""A page of `spillway report` in a browser, for tests to ask about."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import browser
import samples

PIXELS = """
const canvas = document.querySelector('canvas');
const image = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
const pixels = new Uint32Array(image.data.buffer);
"""

CANVAS_COLOURS = PIXELS + """
const counts = new Map();
for (const pixel of pixels) if (pixel !== 0) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
return [...counts.values()].filter(count => count > 200).length;"""

CANVAS_SUM = PIXELS + """
let sum = 0;
for (let i = 0; i < pixels.length; ++i) sum = (sum * 31 + pixels[i]) >>> 0;
return sum;"""

CANVAS_BOX = """
const box = document.querySelector('canvas').getBoundingClientRect();
return [box.left, box.top, box.width, box.height];"""


def report(folder, **files):
    """The path of a page made from these files."""
    samples.write(folder, **files)
    page = folder / "report.html"
    subprocess.run(
        [os.environ["SPILLWAY_PROGRAM"], "report", folder, "-o", page],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return page


class Page(unittest.TestCase):
    files = {}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.page = report(pathlib.Path(cls.folder.name), **cls.files)
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.resize(1200)
        self.browser.prefer("light")
        self.browser.complaints()  # those of the last test's page
        self.browser.open(self.page)
        self.assertEqual(self.browser.complaints(), [])

    def run_script(self, script, *arguments):
        return self.browser.run(script, *arguments)

    def count(self, selector):
        return self.run_script("return document.querySelectorAll(arguments[0]).length", selector)

    def settle(self):
        self.browser.command(
            "Runtime.evaluate",
            awaitPromise=True,
            expression="new Promise(done => "
            "requestAnimationFrame(() => requestAnimationFrame(done)))",
        )

    def keep_picture(self, name):
        folder = os.environ.get("SPILLWAY_PICTURES")
        if folder:
            self.browser.picture(pathlib.Path(folder) / f"{name}.png")

    def show_canvas(self):
        self.run_script("document.querySelector('canvas').scrollIntoView({block: 'center'})")
        self.settle()
        return self.run_script(CANVAS_BOX)

    def tip_at(self, x, y):
        self.browser.point(x, y)
        self.settle()
        return self.tip()

    def tip(self):
        return self.run_script(
            "const tip = document.getElementById('tip'); return tip.hidden ? '' : tip.textContent"
        )

    def assert_shows(self, text):
        shown = self.run_script("return document.body.innerText")
        self.assertTrue(text in shown, f"'{text}' is not in the page's {len(shown)} characters")
