"""Pages of unusual files: hostile, few, many, of several machines."""

import sys

from page import CANVAS_COLOURS, Page
import sample_timeline
import samples


class HostileNames(Page):
    train = samples.train()
    train["rows"][1]["net"] = "<img src=x onerror=document.title='hurt'>\u2028</script>"
    train["machine"]["processor"] = "</script><script>document.title='hurt'</script>"
    files = {"train": train, "step": sample_timeline.timeline(hostile=True)}

    def test_are_text(self):
        self.assertEqual(self.run_script("return document.title"), "Spillway report")
        self.assertEqual(self.count("img"), 0)
        self.assert_shows("<img src=x onerror=")
        self.assert_shows("</script><script>document.title='hurt'</script>")


class TwoMachines(Page):
    files = {
        "a": samples.train(),
        "b": samples.train(
            seed=4, identity="aaaaaaaaaaaa", processor="Another Processor", load=1.9
        ),
    }

    def test_stand_in_sections_of_their_own(self):
        self.assert_shows("2 different machines")
        files = self.run_script("""
            return [...document.querySelectorAll('section[id^=machine]')].map(section =>
              [...section.querySelectorAll('.comparison caption, figcaption')]
                .map(one => one.textContent.match(/[ab]\\.json/)[0]))""")
        self.assertEqual([sorted(set(of)) for of in files], [["a.json"], ["b.json"]])

    def test_tells_of_a_busy_machine(self):
        self.assert_shows("The machine was busy when b.json began (load 1.90 on 2 processors)")


class QuickFigures(Page):
    files = {"link": samples.link()}
    files["link"]["options"] |= {
        "quick": True,
        "notes": ["file is left out: give --far"],
        "sizes": None,
    }

    def test_are_not_passed_off_as_good_ones(self):
        self.assert_shows("link.json: measured with --quick")
        self.run_script(
            "for (const details of document.querySelectorAll('details')) details.open = true"
        )
        self.assert_shows("spillway bench link --link-bandwidth 2GB/s --quick --rounds 5")
        self.assert_shows("file is left out: give --far")


class NearlyNothing(Page):
    files = {"link": samples.bench("link", [])}

    def test_says_what_to_run(self):
        for bench in ("link", "paging", "train", "planners"):
            self.assert_shows(f"spillway bench {bench}")
        self.assert_shows("spillway train --net")
        self.assertEqual(self.count("figure"), 0)


def with_a_shared_run():
    """A training bench whose first run with a budget stands in the series over batches, too."""
    train = samples.train()
    shared = next(row for row in train["rows"] if row["strategy"] == "joint")
    train["rows"].append(shared | {"series": "batch"})
    return train


class SharedRun(Page):
    files = {"train": with_a_shared_run()}

    def test_is_one_point_of_the_predictions(self):
        points, lines = self.run_script("""
            const figure = [...document.querySelectorAll('figure')].find(
                one => one.textContent.includes('Prediction against measurement'));
            return ['path.point', 'tbody tr'].map(name => figure.querySelectorAll(name).length);""")
        told = sum("predicted_seconds" in row for row in self.files["train"]["rows"])
        self.assertEqual(lines, told - 1)
        self.assertEqual(points, told - 1)


class UnsettledResidentStep(Page):
    files = {"train": samples.unsettled_resident()}

    def test_measures_nothing(self):
        self.assertEqual(self.count("td.first, td.tie"), 0)
        shown = self.run_script("return document.body.innerText")
        self.assertNotIn("0.00", shown)
        self.assertNotIn("Overhead against budget", shown)
        self.assert_shows("the resident step has not settled (±100 % in 5 runs)")
        self.run_script("document.querySelector('.comparison').scrollIntoView()")
        self.keep_picture("unsettled")


class SmallStep(Page):
    """Of less than a MiB."""

    files = {"step": sample_timeline.timeline(tasks=40, unit=1024)}

    def test_shows_what_is_near(self):
        left, top, width, _ = self.show_canvas()
        self.assertRegex(self.tip_at(left + width / 2, top + 120), r"in use.*KiB of 400 KiB")
        alpha = self.run_script("""
            const canvas = document.querySelector('canvas');
            const scale = canvas.width / canvas.getBoundingClientRect().width;
            const [x, y] = [0.5 * canvas.width, 150 * scale];
            return canvas.getContext('2d').getImageData(x, y, 1, 1).data[3]""")
        self.assertGreater(alpha, 0)
        self.keep_picture("small_step")


class TwoTrainings(Page):
    files = {"a": samples.training(), "b": samples.training(steps=30, name="vgg16", seed=4)}

    def test_are_drawn_beside_each_other(self):
        self.assert_shows("Trainings beside each other")
        self.assert_shows("Training: b.json")
        self.assertEqual(self.count("figure"), 3)
        self.assertEqual(self.browser.complaints(), [])
        self.run_script("document.querySelector('#trainings').scrollIntoView()")
        self.keep_picture("two_trainings")


class BadFiles(Page):
    files = {
        "train": samples.train(),
        "later": {"format": "spillway-bench", "version": 7},
        "<b>odd": {"format": "something-else"},
    }

    def test_are_named_and_the_rest_is_shown(self):
        self.assert_shows("train.json")
        self.assert_shows("could not be shown")
        self.assert_shows("later.json: version is 7; this program reads version 2")
        self.assert_shows("<b>odd.json is neither a measurement, nor a training, nor a plan")
        self.run_script("document.querySelector('#missing').scrollIntoView()")
        self.keep_picture("bad_files")

    def test_say_on_demand_how_to_get_what_is_missing(self):
        self.assert_shows("Every planner, executed")
        shown = self.run_script("return document.body.innerText")
        self.assertNotIn("spillway bench planners", shown)
        self.run_script(
            "for (const details of document.querySelectorAll('details')) details.open = true"
        )
        self.assert_shows("spillway bench planners")


class LongStep(Page):
    files = {"step": sample_timeline.timeline(tasks=10000)}

    def test_is_drawn_and_moves(self):
        self.assertGreater(self.run_script(CANVAS_COLOURS), 5)
        left, top, width, _ = self.show_canvas()
        milliseconds = self.run_script(
            """
            const canvas = document.querySelector('canvas');
            const begin = performance.now();
            for (let i = 0; i < 20; ++i) {
              canvas.dispatchEvent(new WheelEvent('wheel', {
                deltaY: i < 10 ? -200 : 200, clientX: arguments[0], clientY: arguments[1],
                cancelable: true}));
              await new Promise(requestAnimationFrame);
            }
            return (performance.now() - begin) / 20;""",
            left + width / 2,
            top + 40,
        )
        print(f"a frame of 20,000 tasks took {milliseconds:.1f} ms", file=sys.stderr)
        self.assertRegex(self.tip_at(left + width / 2, top + 32), r"layer\d+\.")


class ManySteps(Page):
    files = {
        name: sample_timeline.timeline(tasks=40)
        for name in ("b-copy-40pct", "b-joint-25pct", "b-joint-40pct", "b-on-demand-40pct")
    }

    def shown(self):
        return self.run_script("""
            return [...document.querySelectorAll('figure:has(canvas) strong')]
              .map(title => title.textContent)""")

    def test_are_two_of_the_readers_choice(self):
        self.assertEqual(
            self.shown(), ["One step: b-joint-40pct.json", "One step: b-on-demand-40pct.json"]
        )
        self.run_script("""
            const choice = document.querySelector('select');
            choice.value = 0;
            choice.dispatchEvent(new Event('change'));""")
        self.assertEqual(
            self.shown(), ["One step: b-copy-40pct.json", "One step: b-on-demand-40pct.json"]
        )
        self.assertGreater(self.run_script(CANVAS_COLOURS), 5)
        self.assertEqual(self.browser.complaints(), [])
