"""Where the programs are that `run` starts, packed or built, and what they need to start."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHIVE = ROOT / "build" / "gpu" / "spillway-gpu.tar.gz"
BUILD = ROOT / "build" / "release"


class Unusable(Exception):
    """Nothing can be measured here; the text is one sentence for the user."""


class Machine:
    """The programs by name, the gpu-labelled test programs, and the environment they start in."""

    def __init__(self, programs, tests, environment, about):
        self.programs = programs
        self.tests = tests
        self.environment = environment
        self.about = about  # where the programs are from

    def program(self, name):
        path = self.programs / name
        if not path.is_file():
            raise Unusable(f"there is no program {path}; build it with 'cmake --build --preset "
                           "release', and pack it with tools/gpu/pack")
        return path

    def expect_gpu(self):
        """What the first GPU is. Throws: Unusable, with the program's reason."""
        call = subprocess.run([self.program("spillway"), "devices", "--json", "-"],
                              capture_output=True, text=True, env=self.environment, check=False)
        if call.returncode != 0:
            words = call.stderr.strip().splitlines() or [f"exit status {call.returncode}"]
            raise Unusable(f"spillway does not start here: {words[-1]}")
        return usable_gpu(json.loads(call.stdout))


def usable_gpu(devices):
    """The first usable GPU among what `spillway devices --json` lists. Throws: Unusable."""
    gpus = [device for device in devices if device["name"].startswith("cuda")]
    if not gpus:
        raise Unusable("there is no usable GPU: this spillway was built without its CUDA side; "
                       "build it where nvcc and cuDNN are, with -DSPILLWAY_CUDA=ON")
    for gpu in gpus:
        if gpu.get("usable"):
            return gpu
    raise Unusable(f"there is no usable GPU: {gpus[0].get('reason', 'no reason is given')}")


def built(build=BUILD):
    """The programs of a build tree."""
    if not (build / "bin" / "spillway").is_file():
        raise Unusable(f"there is neither {ARCHIVE} nor a build in {build}; run 'cmake --workflow "
                       "--preset release', and tools/gpu/pack if the GPU is elsewhere")
    environment = dict(os.environ)
    add_folders(environment, cupti_folders())
    tests = [path for path, _ in gpu_tests(build)]
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True,
                            text=True, check=False).stdout.strip()
    return Machine(build / "bin", tests, environment, {"from": "build tree", "commit": commit})


def packed(archive=ARCHIVE):
    """The programs that tools/gpu/pack has packed, unpacked beside their archive."""
    folder = archive.parent / "unpacked"
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    environment = dict(os.environ)
    libraries = [folder / "lib", *cuda_folders()]
    add_folders(environment, libraries)
    needed = folder / "bin" / "spillway"
    if is_older_gcc(needed, environment):
        add_folders(environment, [folder / "gcc"])
    expect_libraries(manifest["cuda_libraries"], libraries)
    stand_in(pathlib.Path(manifest["source_root"]))
    tests = [folder / name for name in manifest["tests"]]
    return Machine(folder / "bin", tests, environment, {"from": "pack", **manifest})


def gpu_tests(build):
    """The test programs labelled gpu that are built, and those that are not."""
    call = subprocess.run(["ctest", "--test-dir", build, "-L", "^gpu$", "--show-only=json-v1"],
                          capture_output=True, text=True, check=False)
    if call.returncode != 0:
        raise Unusable(f"ctest does not list the tests of {build}; run 'cmake --preset release'")
    commands = [test["command"][0] for test in json.loads(call.stdout)["tests"]
                if test.get("command")]
    programs = dict.fromkeys(pathlib.Path(command) for command in commands)
    return [(program, program.name) for program in programs if program.is_file()]


def add_folders(environment, folders):
    """Puts folders of libraries before those that are there."""
    before = environment.get("LD_LIBRARY_PATH", "")
    words = [str(folder) for folder in folders] + ([before] if before else [])
    if words:
        environment["LD_LIBRARY_PATH"] = ":".join(words)


def cuda_folders():
    """Where CUDA's libraries are: in NVIDIA's Python packages, or in a toolkit."""
    folders = []
    package = importlib.util.find_spec("nvidia")
    for place in (package.submodule_search_locations if package else None) or []:
        folders += sorted(path for path in pathlib.Path(place).glob("*/lib") if path.is_dir())
    for place in ("/usr/local/cuda/lib64", "/usr/local/cuda/lib",
                  "/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/nvidia/lib64"):
        folders += [pathlib.Path(place)] if pathlib.Path(place).is_dir() else []
    return folders


def cupti_folders():
    """A build knows where its libraries are, but for CUPTI's, which is loaded when asked for."""
    return [folder for folder in cuda_folders()
            if "CUPTI" in str(folder) and any(folder.glob("libcupti.so*"))]


def expect_libraries(names, folders):
    """Throws: Unusable when a library of CUDA's is neither in `folders` nor installed."""
    known = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    for name in names:
        if not any((folder / name).exists() for folder in folders) and name not in known:
            raise Unusable(f"{name} was not found, neither in NVIDIA's Python packages of "
                           f"{sys.executable} nor in /usr/local/cuda; install it")


def is_older_gcc(program, environment):
    """Whether libstdc++ here is older than the one that `program` was built with."""
    call = subprocess.run([program, "--version"], capture_output=True, text=True,
                          env=environment, check=False)
    if "GLIBC_" in call.stderr and "not found" in call.stderr:
        raise Unusable("glibc here is older than the one that the programs were built with; build "
                       "them here")
    return call.returncode != 0 and "GLIBCXX_" in call.stderr


def stand_in(root):
    """Tests know golden files by the path at which they were built: it leads here from now on."""
    if root == ROOT or root.exists():
        return
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        root.symlink_to(ROOT)
    except OSError as error:
        print(f"note: {root} does not lead to {ROOT} ({error.strerror}): tests that read golden "
              "files will fail", file=sys.stderr)
