"""The program, the GPU that it finds, and where CUDA's libraries are."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

from gpu_bench import BUILD, ROOT, Failure, call

PROGRAM = BUILD / "bin" / "spillway"
PACKED_LIBRARIES = BUILD / "packed-libraries"  # written by pack
OWN_ENVIRONMENT = dict(os.environ)


def own_environment():
    """The user's environment, for programs with libraries of their own."""
    return OWN_ENVIRONMENT


def find_or_build():
    """The release build's program. Throws: Failure when it cannot be built."""
    if not PROGRAM.is_file():
        print(f"there is no {PROGRAM}: building the release preset", file=sys.stderr, flush=True)
        for words in (["--preset", "release"], ["--build", "--preset", "release"]):
            command = ["cmake", *words]
            if subprocess.run(command, cwd=ROOT, check=False, stdout=sys.stderr).returncode != 0:
                raise Failure(f"'{' '.join(command)}' failed, see above; tools/setup installs what "
                              "the build needs")
    return PROGRAM


def cuda_folders():
    """Folders with CUDA's libraries: those of NVIDIA's Python packages, and the toolkit's."""
    package = importlib.util.find_spec("nvidia")
    places = (package.submodule_search_locations if package else None) or []
    folders = [folder for place in places for folder in sorted(pathlib.Path(place).glob("*/lib"))]
    toolkit = pathlib.Path("/usr/local/cuda")
    return folders + [toolkit / "lib64", toolkit / "extras" / "CUPTI" / "lib64"]


def find_libraries():
    """Lets the programs find their libraries. Built ones know all folders but CUPTI's."""
    folders = cuda_folders()[-1:]
    if PACKED_LIBRARIES.is_dir():
        folders = [PACKED_LIBRARIES, *cuda_folders()]
    before = os.environ.get("LD_LIBRARY_PATH")
    os.environ["LD_LIBRARY_PATH"] = ":".join([*map(str, folders), *([before] if before else [])])


def usable_gpu(program):
    """What `spillway devices` says of the first usable GPU. Throws: Failure with its reason."""
    gpus = [device for device in json.loads(call([program, "devices", "--json", "-"]))
            if device["name"].startswith("cuda")]
    for gpu in gpus:
        if gpu["usable"]:
            return gpu
    raise Failure("there is no usable GPU: "
                  + (gpus[0]["reason"] if gpus else "this spillway was built without CUDA"))


def driver_facts():
    """What nvidia-smi says of the first GPU; nothing where there is no nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        return {}
    names = ["name", "driver_version", "memory.total", "pcie.link.gen.max", "pcie.link.width.max",
             "clocks.max.sm", "power.limit"]
    try:
        said = call(["nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader"])
    except Failure as failure:
        return {"nvidia-smi": str(failure)}
    return dict(zip(names, (word.strip() for word in said.splitlines()[0].split(","))))


def ram_facts():
    """Bytes of RAM, as the system says now: all, available, and pinned."""
    with open("/proc/meminfo", encoding="utf-8") as lines:
        words = dict(line.split(":", 1) for line in lines)
    return {name: int(words[name].split()[0]) << 10
            for name in ("MemTotal", "MemAvailable", "Mlocked", "Cached") if name in words}
