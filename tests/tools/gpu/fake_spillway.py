#!/usr/bin/env -S python3 -IS
"""Stands for the programs that tools/gpu/run starts: takes their flags and writes their JSON.

FAKE in the environment says what is wrong: "no-gpu"; "MEMORY:KEY=VALUE" sets a figure of the
summary or of every step of trainings in this memory mode, or of those on the host; "MEMORY:fail"
ends them with a sentence; "MEMORY:hangs" lets them wait until they are told to end; "MEMORY:refuse"
ends those whose budget is not min; "test-fails" lets the GPU test fail, and
"bf16-fails" that in bf16; "race" is found by the sanitizer; "WORD:hangs" lets the subcommand WORD
wait until it is told to end, and "WORD:fails" ends it with a sentence.
"""

import json
import os
import pathlib
import signal
import sys

name = pathlib.Path(sys.argv[0]).name
words = sys.argv[1:]
fake = os.environ.get("FAKE", "").split()
flag = {words[i]: words[i + 1] for i in range(len(words) - 1) if words[i].startswith("--")}


def write(path, value):
    pathlib.Path(path).write_text(json.dumps(value), encoding="utf-8")


def devices():
    gpu = {"name": "cuda", "usable": False, "reason": "there is no NVIDIA driver"}
    print(json.dumps([{"name": "host", "usable": True}, gpu if "no-gpu" in fake else
                      {"name": "cuda:0", "usable": True, "backend": "cuDNN 9.8",
                       "description": "cuda:0 (NVIDIA H200, 141.0 GiB)",
                       "available_memory_bytes": 80 << 30}]))


def train():
    memory = "host" if flag["--device"] == "host" else flag["--memory"]
    summary = {"parameters": 10, "predicted_step_seconds": 0.1, "near_peak_bytes": 50,
               "budget_bytes": 50, "weights_sha256": "abc"}
    step = {"loss": 1.5, "seconds": 0.1, "near_peak_bytes": 50, "faults": 0, "evictions": 0}
    for word in fake:
        where, _, what = word.partition(":")
        if where != memory:
            continue
        if what == "hangs":
            signal.sigwait([signal.SIGINT])
            sys.exit(130)
        if what == "fail" or (what == "refuse" and flag["--budget"] != "min"):
            sys.exit("there is no room" if what == "fail" else "a budget of 1 B is too small")
        key, _, value = what.partition("=")
        for place in (summary, step):
            if key in place:
                place[key] = type(place[key])(value)
    for i in range(int(flag["--steps"])):
        print(json.dumps({"step": i + 1, **step}))
    print(json.dumps({"summary": summary}))


def bench_link():
    # 2 MB at 50 GB/s take 40 us; as single moves at 25 GB/s they take 80 us.
    rows = [{"way": way, "direction": direction, "bytes": size, "bytes_per_second": rate}
            for way in ("prefetch", "pinned_copy") for direction in ("in", "out", "both")
            for size, rate in ((2_000_000, 25e9), (512_000_000, 50e9))]
    timing = {"median": 4e-6, "max": 9e-4}
    launches = [{"beside": beside, "call_seconds": timing, "seconds": timing}
                for beside in (None, "prefetch")]
    write(flag["--json"], {"rows": rows, "launches": launches})


def bench_train():
    if not 0 < int(flag["--seconds"]) <= 80:
        sys.exit("no time")
    net, batch = flag["--net"].split(":")
    row = {"series": "budget", "net": net, "batch": int(batch), "budget": "40%",
           "resident_bytes": int(batch) << 22}
    done = {**row, "seconds": {"median": 0.12}, "images_per_second": 800.0, "ratio": 1.5,
            "predicted_seconds": 0.1}
    pathlib.Path(flag["--timeline"]).mkdir()
    rows = {"joint": {**done, "planner": "joint", "memory": "managed"},
            "copy": {**row, "planner": "joint", "memory": "copy",
                     "failed": "1 B is too small: a needs 2 B"}}
    write(flag["--json"], {"rows": [
        {**done, "planner": None, "memory": "resident", "predicted_seconds": None},
        *(rows[strategy] for strategy in flag["--strategies"].split(","))]})


def profile():
    write(flag["--out"], {"tasks": [{"task": "conv1.forward", "duration_ns": {"a": 3e6, "b": 2e6}},
                                    {"task": "bn1.backward", "duration_ns": {"default": 5e5}}]})


def gpu_test():
    precision = os.environ.get("SPILLWAY_TEST_PRECISION", "fp32")
    print(f"in {precision}")
    failures = int("test-fails" in fake or f"{precision}-fails" in fake
                   or ("race" in fake and os.environ.get("TOOL") == "racecheck")
                   or os.environ.get("SPILLWAY_REQUIRE_GPU") != "1")
    write(os.environ["GTEST_OUTPUT"].removeprefix("json:"),
          {"tests": 2, "failures": failures,
           "testsuites": [{"testsuite": [{"result": "SKIPPED"}, {"result": "COMPLETED"}]}]})
    sys.exit(failures)


if any(f"{word}:hangs" in fake for word in words):
    signal.sigwait([signal.SIGINT])
    sys.exit(130)
if any(f"{word}:fails" in fake for word in words):
    sys.exit("it failed")
if flag.get("--device") == "cuda" and ("--oversubscribe" in words or not {"16GiB", "25%"} <= set(words)):
    sys.exit("this could take more unified memory than is safe")
if name == "ctest":
    folder = pathlib.Path(flag["--test-dir"]) / "tests"
    bf16 = {"name": "ENVIRONMENT", "value": ["SPILLWAY_TEST_PRECISION=bf16"]}
    kernels = str(folder / "cuda_kernel_tests")
    print(json.dumps({"tests": [
        *({"name": f"A.{i}", "command": [str(folder / "gpu_tests"), f"--gtest_filter=A.{i}"]}
          for i in (1, 2)),
        {"name": "cuda_kernel_tests", "command": [kernels]},
        {"name": "cuda_kernel_tests_in_bf16", "command": [kernels], "properties": [bf16]}]}))
elif name.endswith("_tests"):
    gpu_test()
elif words[0] in ("devices", "train", "profile"):
    {"devices": devices, "train": train, "profile": profile}[words[0]]()
elif words[0] == "bench":
    {"link": bench_link, "train": bench_train}[words[1]]()
elif words[0] == "report":
    write(words[-1], "a page")
