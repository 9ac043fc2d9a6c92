"""Checks that results are right: the tests, the sanitizer, equal bits, no page faults."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess

from gpu_bench import BUILD, Failure, call, is_within_budget
from measured_run import result_of

PACKED = BUILD / "packed.json"  # written by pack
SANITIZER_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"])
LONGEST = 1800  # seconds of a test program
UNSETTLED = 2  # first steps, in which pages get their first places


@dataclasses.dataclass
class GpuTest:
    """A run of a test program: ctest may have several, which differ in their environment."""
    name: str  # of its logs
    command: list
    environment: dict


def gpu_test_of(test):
    """A test as ctest lists it, without what selects one of its program's cases."""
    command = [word for word in test["command"] if not word.startswith("--gtest_")]
    variables = [variable for entry in test.get("properties", [])
                 if entry["name"] == "ENVIRONMENT" for variable in entry["value"]]
    is_one_case = len(command) < len(test["command"])
    return GpuTest(pathlib.Path(command[0]).name if is_one_case else test["name"], command,
                   dict(variable.split("=", 1) for variable in variables))


def gpu_tests():
    """The ctest tests with the label gpu, each program once in each environment."""
    if PACKED.is_file():
        packed = json.loads(PACKED.read_text(encoding="utf-8"))
        tests = [GpuTest(**test) for test in packed["tests"]]
        for test in tests:
            test.command[0] = str(BUILD / test.command[0])
        return tests
    try:
        listed = call(["ctest", "--test-dir", BUILD, "-L", "^gpu$", "--show-only=json-v1"])
    except OSError as error:
        raise Failure("there is no ctest; install CMake") from error
    tests = []
    for listed_test in json.loads(listed)["tests"]:
        test = gpu_test_of(listed_test) if "command" in listed_test else None
        if test and test not in tests:
            tests.append(test)
    return tests


def run_tests(bench, test, prefix):
    """Runs one test program; its output goes into a file of the results."""
    report = bench.results / "report.json"
    suffix = ".sanitizer.log" if prefix else ".log"
    log = bench.results / f"{test.name}{suffix}"
    environment = {**os.environ, **test.environment, "SPILLWAY_REQUIRE_GPU": "1",
                   "GTEST_OUTPUT": f"json:{report}"}
    with log.open("w", encoding="utf-8") as output:
        try:
            status = subprocess.run([*prefix, *test.command], stdout=output, stderr=output,
                                    check=False, env=environment, timeout=LONGEST).returncode
        except subprocess.TimeoutExpired:
            status = f"no end after {LONGEST} s"
    found = {**dataclasses.asdict(test), "status": status, "log": log.name, "tests": 0,
             "failures": 0, "skipped": 0}
    if report.is_file():
        suites = json.loads(report.read_text(encoding="utf-8"))
        report.unlink()
        found.update(tests=suites["tests"], failures=suites["failures"],
                     skipped=sum(case.get("result") == "SKIPPED" for suite in suites["testsuites"]
                                 for case in suite["testsuite"]))
    return found


def run_all_tests(bench, check, title, prefix=()):
    runs = [run_tests(bench, test, prefix) for test in gpu_tests()]
    if not runs:
        raise Failure("no test with the label gpu is built; run 'cmake --build --preset release'")
    check.data["programs"] = runs
    total = {key: sum(run[key] for run in runs) for key in ("tests", "failures", "skipped")}
    bad = [run["log"] for run in runs if run["status"] != 0 or run["tests"] == 0]
    check.row(title, f"{total['tests']} run, {total['failures']} failed, "
              f"{total['skipped']} skipped", not bad)
    if bad:
        raise Failure(f"{title} failed; see {', '.join(bad)}")


def tests(bench, check):
    run_all_tests(bench, check, "tests with a GPU")


def sanitizer(bench, check):
    title = "the same tests under compute-sanitizer"
    tool = shutil.which("compute-sanitizer", path=SANITIZER_PATH)
    if bench.quick or tool is None:
        check.row(title, "left out by --quick" if bench.quick else "not installed")
        return
    # Tests make calls fail on purpose.
    run_all_tests(bench, check, title, [tool, "--report-api-errors", "no", "--error-exitcode", "9"])


def identity(bench, check):
    """Losses and weights are the same, bit by bit, however memory is moved."""
    budgets = ["40%"] if bench.quick else ["60%", "40%", "min"]
    ways = [("resident", None), *((m, b) for b in budgets for m in ("managed", "copy"))]
    wrong = []
    for precision in ["fp32"] if bench.quick else ["fp32", "bf16"]:
        runs = {f"{memory} {budget or ''}".strip(): short_run(bench, precision, memory, budget)
                for memory, budget in ways}
        check.data[precision] = runs
        different = different_runs(runs)
        count = sum("skipped" not in run for run in runs.values())
        check.row(f"runs with the resident run's bits, {precision}",
                  f"{count - len(different)} of {count}", not different)
        wrong += [f"{precision} {name}" for name in different]
    if wrong:
        raise Failure("other bits, too much near memory, or no result: " + ", ".join(wrong))


def short_run(bench, precision, memory, budget):
    batch = bench.managed_batch("resnet18", 128)  # most of what a step needs are activations
    workload = ["--net", "resnet18", "--batch", batch, "--precision", precision, "--deterministic",
                "--conv-algorithm", "direct"]
    flags = ["--steps", 5, "--memory", memory, *(["--budget", budget] if budget else [])]
    try:
        return bench.train(workload, [*flags, "--profile", bench.profile(workload)])
    except Failure as failure:
        # A part of the need may be less than the smallest budget, which has a run of its own.
        is_too_small = budget not in (None, "min") and "too small" in str(failure)
        return {"skipped" if is_too_small else "failed": str(failure)}


def different_runs(runs):
    """Names of runs that failed, are not as the resident one, or took more than their budget."""
    if "failed" in runs["resident"]:
        return list(runs)
    expected = result_of(runs["resident"])
    return [name for name, run in runs.items() if "skipped" not in run
            and ("failed" in run or result_of(run) != expected or not is_within_budget(run))]


def steady(bench, check):
    """A steady step by hints has no page fault and no eviction."""
    batch = bench.managed_batch("resnet50", 64)
    workload = ["--net", "resnet50", "--batch", batch, "--classes", 1000, "--precision", "bf16"]
    flags = ["--memory", "managed", "--budget", "40%", "--steps", 6 if bench.quick else 12,
             "--lr", 0.0001, "--count-faults"]
    try:
        run = bench.train(workload, flags)
    except Failure as failure:
        if "CUPTI" not in str(failure):
            raise
        check.row("page faults in steady steps at 40 %", f"not counted: {failure}")
        return
    check.data["run"] = run
    counts = {what: sum(step[what] for step in run["steps"][UNSETTLED:])
              for what in ("faults", "evictions")}
    for what, count in counts.items():
        check.row(f"{what} in steady steps at 40 %, managed", str(count), count == 0)
    if any(counts.values()) or not is_within_budget(run):
        raise Failure("a steady step has page faults or evictions, or is beyond its budget")


CHECKS = {"tests": tests, "sanitizer": sanitizer, "identity": identity, "steady": steady}
