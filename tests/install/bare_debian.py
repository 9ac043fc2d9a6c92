"""A bare Debian 12 in a folder, in which commands run as on a new machine: what a package or an image meets.

The base system is made once, in ~/.cache/spillway/debian12 (SPILLWAY_DEBIAN12 names another folder). Each
use copies it. Mounts belong to the command that needs them, and go with it.
"""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

BASE = pathlib.Path(os.environ.get("SPILLWAY_DEBIAN12") or pathlib.Path.home() / ".cache/spillway/debian12")
UNREACHABLE = re.compile("Failed to fetch|Temporary failure in name|Could not (resolve|connect)|"
                         "(Connection|Read) ?time(d out|out)|Connection (reset|refused)")
FETCHES = re.compile(r"apt-get|tools/setup")
MOUNTS = 'for m in proc sys dev; do mount --rbind "/$m" "$0/$m" || exit 125; done; '


def is_debian12():
    return "VERSION_CODENAME=bookworm" in pathlib.Path("/etc/os-release").read_text()


def make_base():
    """Makes the base system unless it is there. Returns why it cannot, or None."""
    if os.geteuid() != 0:
        return "not root"
    for tool in ("debootstrap", "unshare", "chroot"):
        if shutil.which(tool) is None:
            return f"there is no {tool}"
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        return "this system refuses mounts"
    if (BASE / ".complete").exists():
        return None
    shutil.rmtree(BASE, ignore_errors=True)
    BASE.parent.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", BASE],
                          capture_output=True, text=True)
    if made.returncode != 0:
        return "debootstrap failed: " + made.stdout.strip().split("\n")[-1]
    (BASE / ".complete").touch()
    return None


def skip(reason):
    """Skips the test, and says so to ctest."""
    print(f"skipped: {reason}", file=sys.__stdout__)
    raise unittest.SkipTest(reason)


def skip_unreachable(said):
    """Skips the test if a command that fetches said that it cannot reach what it needs."""
    if UNREACHABLE.search(said):
        skip("what is fetched cannot be reached")


@contextlib.contextmanager
def enter():
    """A bare Debian that knows its mirror's packages. Skips the test where there is none."""
    reason = make_base()
    if reason:
        skip(f"no bare Debian 12: {reason}")
    with BareDebian() as debian:
        try:
            debian.run("apt-get -o Acquire::Retries=3 update -qq --error-on=any")
        except AssertionError:
            skip("no bare Debian 12: its mirror cannot be reached")
        yield debian


class BareDebian:
    def __init__(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="bare-debian-"))
        subprocess.run(["cp", "-a", "--reflink=auto", f"{BASE}/.", self.root], check=True)
        # The mirror is reached as from here.
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        for folder in ("etc/ssl/certs", "usr/local/share/ca-certificates"):
            subprocess.run(["cp", "-a", f"/{folder}/.", self.root / folder], check=True)
        for file in pathlib.Path("/etc/apt/apt.conf.d").iterdir():
            if "proxy" in file.read_text(errors="replace").lower():
                shutil.copy(file, self.root / "etc/apt/apt.conf.d" / file.name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, command, folder="/root", environment=None, mounts=None):
        """Runs a shell's command; `mounts` are folders from here: {inside: outside}. Returns what it printed.

        Raises AssertionError, with the end of what it printed, where it fails."""
        proxies = {name: os.environ[name] for name in ("http_proxy", "https_proxy") if name in os.environ}
        variables = {"HOME": "/root", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                     "DEBIAN_FRONTEND": "noninteractive", **proxies, **(environment or {})}
        bound = ""
        for inside, outside in (mounts or {}).items():
            place = self.root / inside.lstrip("/")
            place.mkdir(parents=True, exist_ok=True)
            pathlib.Path(outside).mkdir(parents=True, exist_ok=True)
            bound += f"mount --bind {shlex.quote(str(outside))} {shlex.quote(str(place))} || exit 125; "
        inner = ["env", "-i", *(f"{name}={value}" for name, value in variables.items()),
                 "sh", "-c", 'cd "$0" && eval "$1"', folder, command]
        result = subprocess.run(
            ["unshare", "--mount", "--propagation", "slave", "sh", "-c",
             MOUNTS + bound + 'exec chroot "$0" "$@"', self.root, *inner],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace")
        if result.returncode != 0:
            if FETCHES.search(command):
                skip_unreachable(result.stdout)
            raise AssertionError(f"{command}: status {result.returncode}\n{result.stdout[-3000:]}")
        return result.stdout
