#!/usr/bin/env python3
"""Stands for the program spillway: takes its flags and writes its JSON, without training anything.

As `driver_facts` or `card_properties` it writes an object, as `engine_times` the times of one
convolution. FAKE in the environment says what is
wrong with it: "MEMORY:KEY=VALUE" sets a figure of the summary, or of every step, in that memory mode;
"MEMORY:fail" or "PLANNER:fail" makes it end with a sentence, "MEMORY:refuse" refuse budgets but min;
"no-gpu" leaves the machine without one, "full" 20 GiB of it free; "no-engine" lets cuDNN offer none
in tf32, "no-card" tell nothing of the card.
"""

import json
import os
import pathlib
import sys

words = sys.argv[1:]
fake = os.environ.get("FAKE", "").split()
flag = {words[i]: words[i + 1] for i in range(len(words) - 1) if words[i].startswith("--")}
memory = flag.get("--memory", "managed")

if "--oversubscribe" in words or (words[0] in ("train", "profile") and "--shared-gpu" not in words):
    sys.exit("this would take the GPU from others")
if words[0] == "devices":
    gpu = {"name": "cuda", "usable": False, "reason": "there is no NVIDIA driver"}
    print(json.dumps([{"name": "host", "usable": True}, gpu if "no-gpu" in fake else
                      {"name": "cuda:0", "usable": True, "description": "a card",
                       "available_memory_bytes": (20 if "full" in fake else 80) << 30}]))
elif pathlib.Path(sys.argv[0]).name == "engine_times":
    if "--shared-gpu" not in words:
        sys.exit("this would take the GPU from others")
    if "no-engine" in fake and flag["--precision"] == "tf32":
        sys.exit("cuDNN has no engine")
    engines = [{"name": "slow", "workspace_bytes": 1, "seconds": 0.004},
               {"name": "fast", "workspace_bytes": 9, "seconds": 0.001}]
    times = {"convolutions": [{"tasks": ["a", "b"], "engines": engines, "fastest": "fast"}],
             "seconds_by_fastest": 0.002, "seconds_by_least_workspace": 0.008}
    pathlib.Path(flag["--out"]).write_text(json.dumps(times), encoding="utf-8")
elif pathlib.Path(sys.argv[0]).name == "card_properties" and "no-card" in fake:
    sys.exit("cuDNN tells nothing")
elif words[0] in ("profile", "--out"):
    pathlib.Path(flag["--out"]).write_text("{}", encoding="utf-8")
elif words[0] == "train":
    summary = {"batch": int(flag["--batch"]), "parameters": 10, "predicted_step_seconds": 0.1,
               "near_peak_bytes": 50, "budget_bytes": 50, "weights_sha256": "abc",
               "resident_bytes": int(flag["--batch"]) << 22}
    step = {"loss": 1.5, "seconds": 0.1, "stalled_seconds": 0.0, "near_peak_bytes": 50,
            "faults": 0, "evictions": 0}
    for word in fake:
        where, _, what = word.partition(":")
        if where in (memory, flag.get("--planner")) and what == "fail":
            sys.exit("there is no room")
        if where == memory and what == "refuse" and flag["--budget"] != "min":
            sys.exit("a budget of 1 B is too small")
        key, _, value = what.partition("=")
        for place in (summary, step) if where == memory else ():
            if key in place:
                place[key] = type(place[key])(value)
    if "--no-discard" in words and memory != "managed":
        sys.exit("copies discard nothing")
    for i in range(int(flag["--steps"])):
        print(json.dumps({"step": i + 1, **step}))
    print(json.dumps({"summary": summary}))
