"""Checks that results are right: the tests, equal bits, no page faults, the sanitizer."""

import dataclasses
import json
import os
import pathlib
import shutil

import card
from gpu_bench import BUILD, Failure, NotHere, TimeIsUp, call, is_within_budget, started
from measured_run import result_of

PACKED = BUILD / "packed.json"  # written by pack
SANITIZER_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"])
KERNEL_TESTS = "cuda_kernel_tests"  # what a sanitizer runs; in each precision one
# Without those of operations that are cuDNN's or cuBLAS's: their kernels are not ours to check, and
# take long.
OUR_KERNELS = "-*WeightedLayer*:*AttentionAlgorithms*"
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


def gpu_tests(emulated=None):
    """The ctest tests with the label gpu, each program once in each environment; of an emulated GPU
    those that have its name."""
    build, choice = (emulated.BUILD_OF_PROGRAM, ["-R", emulated.TESTS]) if emulated else \
        (BUILD, ["-L", "^gpu$"])
    if PACKED.is_file() and not emulated:
        packed = json.loads(PACKED.read_text(encoding="utf-8"))
        tests = [GpuTest(**test) for test in packed["tests"]]
        for test in tests:
            test.command[0] = str(BUILD / test.command[0])
        return tests
    try:
        listed = call(["ctest", "--test-dir", build, *choice, "--show-only=json-v1"])
    except OSError as error:
        raise Failure("there is no ctest; install CMake") from error
    tests = []
    for listed_test in json.loads(listed)["tests"]:
        test = gpu_test_of(listed_test) if "command" in listed_test else None
        if test and test not in tests:
            tests.append(test)
    return tests


def run_tests(bench, test, prefix, log_ending):
    """Runs one test program; its output goes into a file of the results."""
    report = bench.results / "report.json"
    log = bench.results / f"{test.name}{log_ending}"
    environment = {**os.environ, **test.environment, "SPILLWAY_REQUIRE_GPU": "1",
                   "GTEST_OUTPUT": f"json:{report}"}
    found = {**dataclasses.asdict(test), "status": None, "log": log.name, "tests": 0,
             "failures": 0, "skipped": 0}
    try:
        log.write_text(f"{bench.emulated.WORDS}\n" if bench.emulated else "", encoding="utf-8")
        with log.open("a", encoding="utf-8") as output, \
                started([*prefix, *test.command], bench.seconds_left(), environment,
                        output) as (program, _):
            pass
        found["status"] = program.returncode
    except TimeIsUp:
        found["status"] = "unfinished"
    if report.is_file():
        suites = json.loads(report.read_text(encoding="utf-8"))
        report.unlink()
        found.update(tests=suites["tests"], failures=suites["failures"],
                     skipped=sum(case.get("result") == "SKIPPED" for suite in suites["testsuites"]
                                 for case in suite["testsuite"]))
    return found


def is_bad(run):
    """Of tests that had no time to finish nothing is known, but for those that failed."""
    if run["status"] == "unfinished":
        return run["failures"] > 0
    return run["status"] != 0 or run["tests"] == 0


def run_all_tests(bench, check, title, chosen, prefix=(), log_ending=".log"):
    """One row for all of them. Throws: Failure, and TimeIsUp where one has not finished."""
    runs = [run_tests(bench, test, prefix, log_ending) for test in chosen]
    if not runs:
        raise Failure("no such test is built; run 'cmake --build --preset release'")
    check.data["programs"] = runs
    total = {key: sum(run[key] for run in runs) for key in ("tests", "failures", "skipped")}
    unfinished = [run["name"] for run in runs if run["status"] == "unfinished"]
    bad = [run["log"] for run in runs if is_bad(run)]
    value = (f"{total['tests']} run, {total['failures']} failed, {total['skipped']} skipped"
             + (f"; no time for all of {', '.join(unfinished)}" if unfinished else ""))
    check.row(title, value, None if unfinished and not bad else not bad)
    if bad:
        raise Failure(f"{title} failed; see {', '.join(bad)}")
    if unfinished:
        raise TimeIsUp


def facts(bench, check):
    """What is measured: the GPU, its link, and the RAM beside it."""
    ram = card.ram_facts()
    driver = {} if bench.emulated else card.driver_facts()
    check.data.update(gpu=bench.card, free_bytes=bench.free_bytes, driver=driver, ram=ram)
    check.row("GPU memory, free", f"{bench.free_bytes / 2**30:.1f} GiB of {bench.card}")
    check.row("RAM, available / all; it may grow with its use",
              " / ".join(f"{ram[name] / 2**30:.1f}" for name in ("MemAvailable", "MemTotal"))
              + " GiB")
    for name, value in driver.items():
        check.row(name, value)


def tests(bench, check):
    run_all_tests(bench, check, "tests with a GPU", gpu_tests(bench.emulated))


def kernel_tests():
    """The tests of our own kernels, in each precision that has more than cuDNN's."""
    tests = [test for test in gpu_tests() if test.name.startswith(KERNEL_TESTS)
             and "GTEST_FILTER" not in test.environment]
    return [dataclasses.replace(test, environment={**test.environment, "GTEST_FILTER": OUR_KERNELS})
            for test in tests]


def sanitizer(tool):
    """The check that runs the tests of our kernels under a tool of compute-sanitizer."""
    def check_sanitizer(bench, check):
        title = f"tests of our kernels under {tool}"
        program = shutil.which("compute-sanitizer", path=SANITIZER_PATH)
        if bench.quick or program is None:
            raise NotHere("--quick leaves it out" if bench.quick
                          else "compute-sanitizer is not installed")
        # Tests make calls fail on purpose.
        prefix = [program, "--tool", tool, "--error-exitcode", "9",
                  *(["--report-api-errors", "no"] if tool == "memcheck" else [])]
        run_all_tests(bench, check, title, kernel_tests(), prefix, f".{tool}.log")
    return check_sanitizer


def identity(bench, check):
    """Losses and weights are the same, bit by bit, however memory is moved."""
    budgets = [bench.budget("40%")] if bench.quick else ["60%", "40%", "min"]
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
    net, batch = bench.network("resnet18", 128)  # most of what a step needs are activations
    if bench.emulated:  # a thin ResNet-18 is too small for moves
        net, batch = bench.network("vgg16", 128)[0], 32
    workload = ["--net", net, "--batch", batch, "--precision", precision, "--deterministic",
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
    net, batch = bench.network("resnet50", 64)
    workload = ["--net", net, "--batch", batch, "--classes", 1000, "--precision", "bf16"]
    flags = ["--memory", "managed", "--budget", bench.budget("40%"), "--steps",
             6 if bench.quick else 12,
             "--lr", 0.0001, "--count-faults"]
    try:
        run = bench.train(workload, flags)
    except Failure as failure:
        if "CUPTI" not in str(failure):
            raise
        raise NotHere(f"page faults cannot be counted: {failure}") from None
    check.data["run"] = run
    counts = {what: sum(step[what] for step in run["steps"][UNSETTLED:])
              for what in ("faults", "evictions")}
    for what, count in counts.items():
        check.row(f"{what} in steady steps at 40 %, managed", str(count), count == 0)
    if any(counts.values()) or not is_within_budget(run):
        raise Failure("a steady step has page faults or evictions, or is beyond its budget")
