"""The result files: all figures as JSON, and the Markdown table of them."""

import json

from gpu_bench import Check, Failure

VERSION = 3
STATUSES = ["failed", "passed", "left out", "running"]
CIRCUMSTANCES = {  # results that were found in other ones are not taken over
    "at another commit": lambda about: about["commit"],
    "with other local changes": lambda about: about["has_local_changes"],
    "on another GPU": lambda about: about["gpu"]["description"],
    "by another choice of --quick": lambda about: about["quick"],
    "by another choice of --emulated": lambda about: about["emulated"],
}


class Results:
    """Both files, written anew when a stage begins and when it ends: what is there counts if one
    hangs. Begins with what is in the folder, where that was found in the same circumstances.
    Throws: Failure when that is of another version."""

    def __init__(self, folder, card, about):
        self.folder = folder
        self.card = card
        self.about = about
        self.checks = {}  # by name
        self.others = []  # in which circumstances what is there was found, and is not taken over
        path = folder / "results.json"
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["version"] != VERSION:
                raise Failure(f"{path} is of another version of tools/gpu; give another folder")
            self.others = [words for words, part in CIRCUMSTANCES.items()
                           if part(found) != part(about)]
            if not self.others:
                self.checks = {check["name"]: Check(**check) for check in found["checks"]}

    def status(self, name):
        """None where the stage has not run."""
        return self.checks[name].status if name in self.checks else None

    def has_rows(self, name):
        return name in self.checks and bool(self.checks[name].rows)

    def failed(self):
        """Names of the stages that failed."""
        return self.names("failed")

    def names(self, status):
        return [name for name, check in self.checks.items() if check.status == status]

    def write(self, check):
        """With a stage as it is now, in the place of an earlier run's."""
        self.checks[check.name] = check
        (self.folder / "results.json").write_text(self.json(), encoding="utf-8")
        (self.folder / "summary.md").write_text(self.markdown(), encoding="utf-8")

    def json(self):
        found = {"format": "spillway-gpu", "version": VERSION, **self.about,
                 "checks": [vars(check) for check in self.checks.values()]}
        return json.dumps(found, indent=1) + "\n"

    def markdown(self):
        about = self.about
        driver = about["driver"].get("driver_version", "unknown")
        changed = " with local changes" if about["has_local_changes"] else ""
        commit = (about["commit"] or "unknown") + changed
        lines = [f"# Spillway on {self.card}", "",
                 f"{about['date']}, commit {commit}, driver {driver}", about["gpu"]["backend"], ""]
        if about["emulated"]:
            lines += [f"**{about['emulated']}**", ""]
        if about["quick"]:
            lines += ["With --quick: small batches and few steps.", ""]
        lines += [f"{status}: {', '.join(self.names(status))}" + "\\"
                  for status in STATUSES if self.names(status)]
        lines += ["", "| figure | measured | |", "|---|---|---|"]
        for check in self.checks.values():
            lines += [line(*row) for row in check.rows]
            if check.status != "passed":
                verdict = "FAILED" if check.status == "failed" else ""
                lines.append(line(check.name, check.reason, verdict))
        return "\n".join(lines) + "\n"


def line(*cells):
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells).rstrip() + " |"
