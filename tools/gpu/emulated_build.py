"""The plug-in for the emulated GPU, of sources that are compiled anew in another way."""

import concurrent.futures
import os
import pathlib
import shlex
import shutil
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


def relink(target, to, objects, flags=()):
    """Links a target of the build anew, with these objects in the place of the plug-in's archives."""
    words = [word for word in commands_of(target)[-1].split("&&")[1].split()
             if "spillway_cuda_backend" not in word and "libspillway_um_cuda.a" not in word
             and "/plugin.cpp.o" not in word]
    at = words.index("-o")
    words[at + 1] = str(to)
    words[at:at] = [*flags, *(str(each) for each in objects)]
    to.unlink(missing_ok=True)
    subprocess.run(" ".join(words), shell=True, cwd=BUILD, check=True)
    return to


def link(folder, objects, flags=()):
    """Links the plug-in of these objects, in a folder with all that lies beside it; the program there."""
    shutil.copytree((BUILD / LIBRARY).parent, folder, symlinks=True, dirs_exist_ok=True,
                    copy_function=link_or_copy)
    relink(LIBRARY, folder / "libspillway_cuda.so", objects, flags)
    return folder / "spillway"


def link_or_copy(one, other):
    pathlib.Path(other).unlink(missing_ok=True)
    os.link(one, other)
