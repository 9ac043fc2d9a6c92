"""Stages that say whether results are right: tests, facts, identity, steady."""

import json

from measuring import Failure, brief


def tests(bench, result):
    """Every test program labelled gpu, none of whose tests may be skipped."""
    result["programs"] = []
    for program in bench.machine.tests:
        result["programs"].append(run_tests(bench, program))
    failed = [p["program"] for p in result["programs"]
              if p["failures"] or p.get("skipped") or p["status"] != 0 or p["tests"] == 0]
    if not result["programs"]:
        raise Failure("there is no test program with the label gpu; build them")
    if failed:
        raise Failure("tests fail or are skipped in " + ", ".join(failed))


def run_tests(bench, program):
    report = bench.work / f"{program.name}.json"
    report.unlink(missing_ok=True)
    done = bench.attempt([program, f"--gtest_output=json:{report}", "--gtest_brief=1"],
                         {**bench.machine.environment, "SPILLWAY_REQUIRE_GPU": "1"})
    summary = {"program": program.name, "status": done.returncode, "tests": 0, "failures": 0,
               "failed": []}
    if not report.is_file():  # it crashed, or did not start
        summary["last_words"] = (done.stderr or done.stdout).strip()[-2000:]
        return summary
    suites = json.loads(report.read_text(encoding="utf-8"))
    summary.update({"tests": suites["tests"], "failures": suites["failures"],
                    "seconds": suites["time"]})
    summary["skipped"] = []
    for suite in suites["testsuites"]:
        for test in suite["testsuite"]:
            if test.get("result") == "SKIPPED":
                summary["skipped"].append(f"{suite['name']}.{test['name']}")
            if "failures" in test:
                words = "\n".join(f["failure"] for f in test["failures"])[:2000]
                summary["failed"].append({"test": f"{suite['name']}.{test['name']}",
                                          "failure": words})
    return summary


def facts(bench, result):
    """The driver and the link: driver_facts.cpp. The card as cuDNN describes it, for plans where
    there is none: card_properties.cpp."""
    failed = []
    for part in (driver_facts, card_properties):
        try:
            part(bench, result)
        except Failure as failure:
            failed.append(str(failure))
    if failed:
        raise Failure("; ".join(failed))


def driver_facts(bench, result):
    path = bench.work / "driver_facts.json"
    path.unlink(missing_ok=True)
    command = [bench.machine.program("driver_facts"), "--out", path]
    done = bench.attempt(command + (["--quick"] if bench.quick else []))
    if path.is_file():
        result["driver"] = json.loads(path.read_text(encoding="utf-8"))
    if done.returncode != 0:
        raise Failure((done.stderr.strip().splitlines() or ["driver_facts crashed"])[-1])


def card_properties(bench, result):
    path = bench.work / "card_properties.json"
    bench.call([bench.machine.program("card_properties"), "--out", path])
    text = path.read_text(encoding="utf-8").strip()
    # The text to the letter: cuDNN reads it, too.
    result["card"] = {"text": text, "properties": json.loads(text)}


def identity(bench, result):
    """Losses and weights are the same, bit by bit, however memory is moved."""
    budgets = ["40%"] if bench.quick else ["60%", "40%", "min"]
    runs = [("resident", None)] + [(m, b) for b in budgets for m in ("managed", "copy")]
    precisions = ["fp32"] if bench.quick else ["fp32", "bf16"]
    result["precisions"] = {}
    wrong = []
    for precision in precisions:
        kept = result["precisions"].setdefault(precision, {})
        for memory, budget in runs:
            name = memory + (f" {budget}" if budget else "")
            kept[name] = identity_run(bench, precision, memory, budget)
        wrong += [f"{precision} {name}" for name in differing(kept)]
    if wrong:
        raise Failure("another result or too much near memory: " + ", ".join(wrong))


def identity_run(bench, precision, memory, budget):
    # With fewer images the parameters, which stay near, are most of what a step needs.
    workload = ["--net", "resnet18", "--batch", 128, "--precision", precision, "--deterministic",
                "--conv-algorithm", "direct"]
    flags = ["--steps", 5, "--memory", memory] + (["--budget", budget] if budget else [])
    try:
        flags += ["--profile", bench.profile(workload, "managed")]
        return brief(bench.train(workload, flags))
    except Failure as failure:
        # A part of the need may be less than the smallest budget, at which there is a run as well.
        is_too_small = budget is not None and budget != "min" and "too small" in str(failure)
        return {"skipped" if is_too_small else "failed": str(failure)}


def differing(runs):
    """Names of the runs that failed, differ from the resident one, or overran their budget."""
    def of(run):
        return [step["loss"] for step in run["steps"]], run["summary"]["weights_sha256"]
    resident = runs["resident"]
    if "failed" in resident:
        return list(runs)
    return [name for name, run in runs.items() if "skipped" not in run
            and ("failed" in run or of(run) != of(resident) or is_over_budget(run))]


def is_over_budget(run):
    return run["summary"]["near_peak_bytes"] > run["summary"]["budget_bytes"]


UNSETTLED = 2  # first steps, in which pages get their first places


def steady(bench, result):
    """A steady managed step causes no page fault and no eviction."""
    workload = ["--net", "resnet50", "--batch", 64, "--classes", 1000, "--precision", "bf16"]
    steps = 6 if bench.quick else 12
    run = bench.train(workload, ["--memory", "managed", "--budget", "40%", "--steps", steps,
                                 "--lr", 0.0001, "--count-faults"])
    result["run"] = brief(run)
    later = run["steps"][UNSETTLED:]
    for key in ("faults", "evictions"):
        result[f"first_{key}"] = [step[key] for step in run["steps"][:UNSETTLED]]
        result[f"steady_{key}"] = [step[key] for step in later]
    if any(step["faults"] or step["evictions"] for step in later):
        raise Failure("a steady step has page faults or evictions")
    if is_over_budget(run):
        raise Failure("more near memory than the budget was used")
