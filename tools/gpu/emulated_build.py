"""The plug-in for the emulated GPU, of sources that are compiled anew in another way."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
LIBRARY = "tests/emulated/libspillway_cuda.so"
PROGRAM = "tests/emulated/spillway"
NOT_LINKED = {"src/cuda/ranks/without_nccl.cpp"}


def expect_build(name):
    if not (BUILD / PROGRAM).exists():
        sys.exit(f"tools/gpu/{name}: {BUILD / PROGRAM} is not built; run "
                 "cmake --preset release && cmake --build --preset release")


def sources():
    """Of um/cuda and src/cuda, from the root; kernels are compiled otherwise."""
    for folder in ("um/cuda", "src/cuda"):
        for path in sorted((ROOT / folder).rglob("*.cpp")):
            name = str(path.relative_to(ROOT))
            if name not in NOT_LINKED:
                yield name


def commands_of(target):
    text = subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", target], check=True,
                          capture_output=True, text=True).stdout
    return text.splitlines()


def flags_of_plugin():
    """Those with which the emulated plug-in's own source is compiled."""
    command = next(line for line in commands_of(LIBRARY)
                   if "emulated_cuda_plugin.dir" in line and " -c " in line)
    words = iter(shlex.split(command))
    for word in words:
        if word == "-isystem":
            yield from (word, next(words))
        elif word.startswith(("-I", "-D", "-std", "-fPIC")):
            yield word


def object_of(folder, source):
    return folder / (source.replace("/", ".") + ".o")


def compile_all(folder, flags, tree=ROOT, names=None):
    """Compiles the sources in `tree`, all or those named, into `folder`."""
    common = [*flags_of_plugin(), "-isystem", "/usr/local/cuda/extras/CUPTI/include", *flags]
    folder.mkdir(parents=True, exist_ok=True)

    def compile_one(source):
        done = subprocess.run(["c++", *common, "-c", str(tree / source), "-o",
                               str(object_of(folder, source))], capture_output=True, text=True)
        return source, done.stderr if done.returncode != 0 else ""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(pool.map(compile_one, names or sources()))


ARCHIVES = {"src/cuda/libspillway_cuda_backend.a": "src/cuda/",
            "um/cuda/libspillway_um_cuda.a": "um/cuda/"}


def archive(folder, names):
    """The plug-in's archives with the objects that compile_all() made in the place of the build's own:
    by the words of a linker's command that name those. Kernels stay."""
    instead = {}
    for name, room in ARCHIVES.items():
        own = [object_of(folder, each) for each in names if each.startswith(room)]
        path = folder / pathlib.Path(name).name
        shutil.copy(BUILD / name, path)
        members = subprocess.run(["ar", "t", path], check=True, capture_output=True, text=True).stdout
        replaced = [each for each in members.split() if not each.endswith(".cu.o")]
        subprocess.run(["ar", "d", path, *replaced], check=True)
        subprocess.run(["ar", "qs", path, *own], check=True)
        instead[name] = path
        if f"{room}plugin.cpp" in names:
            instead[f"{room}plugin.cpp.o"] = object_of(folder, f"{room}plugin.cpp")
    return instead


def relink(target, to, archives, flags=()):
    """Links a target of the build anew, with these archives."""
    words = next(line for line in commands_of(target)[-1].split("&&") if " -o " in line).split()
    for at, word in enumerate(words):
        for name, instead in archives.items():
            if word.endswith(name):
                words[at] = str(instead)
    at = words.index("-o")
    words[at:at + 2] = [*flags, "-o", str(to)]
    to.parent.mkdir(parents=True, exist_ok=True)
    to.unlink(missing_ok=True)
    subprocess.run(" ".join(words), shell=True, cwd=BUILD, check=True)
    return to


def link(folder, archives, flags=()):
    """Links the plug-in anew, in a folder with all that lies beside it; the program there."""
    copy_tree((BUILD / LIBRARY).parent, folder)
    relink(LIBRARY, folder / "libspillway_cuda.so", archives, flags)
    return folder / "spillway"


def copy_tree(one, other):
    def are_there(folder, names):
        there = other / os.path.relpath(folder, one)
        return [each for each in names if (there / each).is_symlink()]
    shutil.copytree(one, other, symlinks=True, dirs_exist_ok=True, copy_function=link_or_copy,
                    ignore=are_there)


def link_or_copy(one, other):
    pathlib.Path(other).unlink(missing_ok=True)
    os.link(one, other)


def tests_of(regex):
    """Of ctest, as it describes them: name, command, environment."""
    text = subprocess.run(["ctest", "--test-dir", BUILD, "-R", regex, "--show-only=json-v1"], check=True,
                          capture_output=True, text=True).stdout
    return [Test(each) for each in json.loads(text)["tests"] if "command" in each]


class Test:
    """A test of ctest that runs what is linked anew below `folder` instead of the build's."""

    def __init__(self, description):
        properties = {each["name"]: each["value"] for each in description["properties"]}
        self.name, self.command = description["name"], description["command"]
        self.settings = dict(each.split("=", 1) for each in properties.get("ENVIRONMENT", []))

    def run(self, folder, timeout=None):
        def moved(text):
            return text.replace(f"{BUILD}/tests", f"{folder}/tests")
        environment = os.environ | {name: moved(value) for name, value in self.settings.items()}
        command = [moved(word) for word in self.command]
        program = subprocess.Popen(command, env=environment, cwd=BUILD / "tests", start_new_session=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            output, errors = program.communicate(timeout=timeout)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)  # with all that it left
        return subprocess.CompletedProcess(command, program.returncode, output, errors)
