"""The result files: all figures as JSON, and the Markdown table of them."""

import json

from gpu_bench import Check


class Results:
    """Both files, written anew after each check: what is there counts if the next one hangs. Begins
    with the checks that are in the folder."""

    def __init__(self, folder, card, about, stages):
        self.folder = folder
        self.card = card
        self.about = about
        self.stages = stages
        self.checks = []
        path = folder / "results.json"
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
            self.checks = [Check(**check) for check in found["checks"]]

    def failed(self, before=None):
        """Names of the checks that failed: of all, or of the stages before one."""
        stages = self.stages[:self.stages.index(before)] if before else self.stages
        return [check.name for check in self.checks
                if check.stage in stages and check.status == "failed"]

    def forget(self, stage):
        """What an earlier run found in this stage."""
        self.checks = [check for check in self.checks if check.stage != stage]

    def add(self, check):
        self.checks.append(check)
        (self.folder / "results.json").write_text(self.json(), encoding="utf-8")
        (self.folder / "summary.md").write_text(self.markdown(), encoding="utf-8")

    def json(self):
        found = {"format": "spillway-gpu", "version": 1, **self.about,
                 "checks": [vars(check) for check in self.checks]}
        return json.dumps(found, indent=1) + "\n"

    def markdown(self):
        about = self.about
        driver = about["driver"].get("driver_version", "unknown")
        changed = " with local changes" if about["has_local_changes"] else ""
        commit = (about["commit"] or "unknown") + changed
        lines = [f"# Spillway on {self.card}", "",
                 f"{about['date']}, commit {commit}, driver {driver}", about["gpu"]["backend"], ""]
        if about["quick"]:
            lines += ["With --quick: small batches and few steps.", ""]
        lines += ["| figure | measured | |", "|---|---|---|"]
        for check in self.checks:
            lines += [line(*row) for row in check.rows]
            if check.status != "passed":
                verdict = "FAILED" if check.status == "failed" else ""
                lines.append(line(check.name, check.reason, verdict))
        return "\n".join(lines) + "\n"


def line(*cells):
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells).rstrip() + " |"
