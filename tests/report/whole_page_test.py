"""The page with everything in it."""

from page import CANVAS_COLOURS, CANVAS_SUM, Page
import sample_timeline
import samples


class WholePage(Page):
    files = {
        "train": samples.train(),
        "planners": samples.planners(),
        "link": samples.link(),
        "paging": samples.paging(),
        "step": sample_timeline.timeline(),
        "run": samples.training(),
    }

    def test_loads_without_a_network(self):
        self.assertEqual(
            self.run_script("return performance.getEntriesByType('resource').length"), 0
        )

    def test_draws_every_picture(self):
        for name, least in (
            ("path.series", 30),
            ("path.point", 200),
            ("path.spread", 100),
            ("path.band", 2),
            ("path[data-purpose]", 3),
            ("path.range", 5),
        ):
            paths = self.run_script(
                """
                return [...document.querySelectorAll('figure ' + arguments[0])]
                  .map(path => path.getAttribute('d'))""",
                name,
            )
            self.assertGreaterEqual(len(paths), least, name)
            self.assertFalse(
                [path for path in paths if not path or "NaN" in path or "undefined" in path], name
            )
        self.assertEqual(self.count("figure"), 11)
        self.assertGreater(self.run_script(CANVAS_COLOURS), 5)

    def test_names_every_axis(self):
        axes = self.run_script("""
            return [...document.querySelectorAll('figure .picture svg')].map(svg =>
              [...svg.querySelectorAll('.axis-name')].filter(one => one.textContent).length)""")
        self.assertEqual(set(axes), {2})

    def test_draws_the_curves_of_a_training(self):
        self.assert_shows("lenet at batch 8 on synthetic images: 1000 steps, loss ")
        self.assert_shows("The best evaluation is that of step 1000, epoch 1: loss ")
        self.assert_shows("Near memory was at most ")
        titles = self.run_script("""
            const figure = [...document.querySelectorAll('figure')].find(
                one => one.textContent.includes('Training: run.json'));
            return [...figure.querySelectorAll('.panel-title')].map(one => one.textContent)""")
        self.assertEqual(titles, ["Loss", "Accuracy", "Learning rate", "Memory of a step",
                                  "Time of a step"])
        self.run_script("document.querySelector('#trainings').scrollIntoView()")
        self.keep_picture("training")

    def test_begins_with_the_verdict(self):
        lead = self.run_script("return document.querySelector('#machine-1 .lead').textContent")
        self.assertIn(
            "densenet121, batch 32, with 40 % of the memory it needs: "
            "joint takes 1.08× the resident step",
            lead,
        )

    def test_marks_the_fastest_and_explains_failures(self):
        self.assertGreater(self.count("td.first"), 5)
        self.assertEqual(self.count("td.first + td.first"), 0)
        self.run_script("document.querySelector('td summary').click()")
        self.assert_shows("needs most")

    def test_tells_the_task_and_its_bytes_under_the_pointer(self):
        left, top, width, _ = self.show_canvas()
        self.assertRegex(
            self.tip_at(left + width * 0.3, top + 32), r"layer\d+\.forward|waiting before"
        )
        # A move of the lane "out" at the very begin of the step, where one always is.
        self.assertRegex(self.tip_at(left + 68, top + 55), r"layer0\.y.*near to far.*8 MiB")
        self.keep_picture("hover")

    def test_tells_what_is_near_under_the_pointer(self):
        left, top, width, _ = self.show_canvas()
        self.assertRegex(
            self.tip_at(left + width * 0.5, top + 120),
            r"near memory at.*in use.*of 400 MiB.*layer\d+\.y",
        )

    def test_tells_about_a_point_of_a_line(self):
        x, y = self.run_script("""
            const point = document.querySelector('[data-series="joint"] .point');
            point.scrollIntoView({block: 'center'});
            const box = point.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2];""")
        self.settle()  # the scroll event, which hides the tip, comes a frame later
        self.assertRegex(self.tip_at(x, y), r"joint at 100%.*step.*predicted.*near memory")

    def test_zooms_by_wheel_drag_buttons_and_keys(self):
        left, top, width, _ = self.show_canvas()
        whole = self.run_script(CANVAS_SUM)
        seen = {whole}

        def expect_new(name):
            self.settle()
            now = self.run_script(CANVAS_SUM)
            self.assertNotIn(now, seen, name)
            seen.add(now)

        self.browser.wheel(left + width / 2, top + 200, -300)
        expect_new("wheel")
        self.browser.drag(left + width / 2, top + 200, -150)
        expect_new("drag")
        self.run_script("document.querySelector('canvas').focus()")
        for key in ("+", "ArrowRight", "-"):
            self.browser.key(key)
            expect_new(key)
        self.browser.key("n")
        self.settle()
        self.assertRegex(self.tip(), r"layer\d+\.")
        self.browser.key("s")
        self.settle()
        self.assertIn("waiting before", self.tip())
        self.run_script("document.querySelector('canvas').blur()")
        self.run_script("""[...document.querySelectorAll('button')]
            .find(one => one.textContent === 'Whole step').click()""")
        self.settle()
        self.tip_at(5, 5)
        self.assertEqual(self.run_script(CANVAS_SUM), whole)

    def test_pinches(self):
        left, top, width, _ = self.show_canvas()
        whole = self.run_script(CANVAS_SUM)

        def touch(kind, *places):
            self.browser.command(
                "Input.dispatchTouchEvent",
                type=kind,
                touchPoints=[{"x": x, "y": top + 80, "id": i} for i, x in enumerate(places)],
            )

        middle = left + width / 2
        touch("touchStart", middle - 30, middle + 30)
        touch("touchMove", middle - 60, middle + 60)
        touch("touchMove", middle - 120, middle + 120)
        touch("touchEnd")
        self.settle()
        self.assertNotEqual(self.run_script(CANVAS_SUM), whole)

    def test_goes_dark_with_the_system_and_by_the_button(self):
        self.show_canvas()
        light = self.run_script(CANVAS_SUM)
        background = "return getComputedStyle(document.body).backgroundColor"
        is_light = self.run_script(background)
        self.browser.prefer("dark")
        self.settle()
        self.assertNotEqual(self.run_script(background), is_light)
        self.assertNotEqual(self.run_script(CANVAS_SUM), light)
        self.keep_picture("dark")
        self.run_script("document.getElementById('theme').click()")
        self.assertEqual(self.run_script(background), is_light)
        self.assertEqual(self.run_script(CANVAS_SUM), light)

    def test_fits_a_phone(self):
        self.browser.resize(390, 844)
        self.browser.open(self.page)
        self.settle()
        self.assertEqual(self.run_script("return document.documentElement.scrollWidth"), 390)
        wide = self.run_script("""
            return [...document.querySelectorAll('figure, svg, canvas, p, h2, h3')]
              .filter(element => !element.closest('.scroll'))
              .filter(element => element.getBoundingClientRect().right > 391)
              .map(element => element.outerHTML.slice(0, 80))""")
        self.assertEqual(wide, [])
        self.assertGreater(self.run_script(CANVAS_COLOURS), 5)
        self.keep_picture("phone")

    def test_keeps_the_legend_in_sight_on_a_phone(self):
        self.browser.resize(390, 844)
        self.browser.open(self.page)
        self.settle()
        bare = self.run_script("""
            return [...document.querySelectorAll('figure')]
              .filter(figure => !figure.querySelector('.legend'))
              .map(figure => figure.querySelector('strong').textContent)""")
        self.assertEqual(bare, [])
        top = self.run_script("""
            const figure = [...document.querySelectorAll('figure')].find(
                one => one.textContent.includes('Bandwidth of the link'));
            [...figure.querySelectorAll('svg')].at(-1).scrollIntoView();
            return figure.querySelector('.legend').getBoundingClientRect().top""")
        self.assertEqual(round(top), 0)
        self.keep_picture("phone_legend")

    def test_prints_in_light_colours_without_controls(self):
        self.browser.prefer("dark")
        pdf = self.browser.pdf()
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreater(len(pdf), 50000)
        self.browser.command("Emulation.setEmulatedMedia", media="print")
        shown = self.run_script("""
            return [...document.querySelectorAll('button, .controls, nav')]
              .filter(one => one.getClientRects().length > 0).length""")
        self.browser.prefer("dark")
        self.assertEqual(shown, 0)
        self.run_script("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.run_script("return document.documentElement.dataset.theme"), "light")
        self.assertEqual(self.count("td details:not([open])"), 0)
        self.run_script("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(self.run_script("return document.documentElement.dataset.theme"), "dark")

    def test_has_a_name_for_everything_that_is_a_picture(self):
        nameless = self.run_script("""
            return [...document.querySelectorAll('[role=img]')].filter(one => {
              const label = one.getAttribute('aria-label') ??
                document.getElementById(one.getAttribute('aria-labelledby'))?.textContent;
              return !label;
            }).length""")
        self.assertEqual(nameless, 0)
        self.assertEqual(self.count("figure:not(:has(figcaption))"), 0)
        self.assertEqual(
            self.run_script("""
            const ids = [...document.querySelectorAll('[id]')].map(one => one.id);
            return ids.length - new Set(ids).size"""),
            0,
        )
