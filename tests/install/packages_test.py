"""Makes the Debian packages of a build (the folder SPILLWAY_BUILD), and installs them in a bare Debian 12.

Each class is a test of ctest, which says `skipped` where a line begins so."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import bare_debian
from bare_debian import skip

BUILD = pathlib.Path(os.environ["SPILLWAY_BUILD"])
TESTS = pathlib.Path(__file__).resolve().parents[1]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class PackagesCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps"):
            if shutil.which(tool) is None:
                skip(f"there is no {tool}")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        made = subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder.name],
                              capture_output=True, text=True)
        if made.returncode != 0:
            raise AssertionError(made.stdout + made.stderr)
        cls.files = {path.name.split("_")[0]: path for path in pathlib.Path(folder.name).glob("*.deb")}
        cls.version = output(BUILD / "bin/spillway", "--version").split()[1]


class Made(PackagesCase):
    def depends(self, package):
        listed = output("dpkg-deb", "--field", self.files[package], "Depends")
        return {name.strip().split(" ")[0] for name in listed.split(",")}

    def test_are_of_the_programs_version(self):
        self.assertLessEqual({"spillway", "libspillway-um-dev"}, set(self.files))
        for path in self.files.values():
            self.assertEqual(output("dpkg-deb", "--field", path, "Version").strip(), self.version)

    def test_hold_their_licences(self):
        for package, path in self.files.items():
            inside = output("dpkg-deb", "--contents", path)
            for name in ("LICENSE", "copyright"):
                self.assertIn(f"./usr/share/doc/{package}/{name}\n", inside)

    def test_need_nothing_of_a_plug_in(self):
        needed = self.depends("spillway")
        self.assertIn("libc6", needed)
        self.assertEqual([name for name in needed if re.search("mpi|cud|spillway", name)], [])
        self.assertLessEqual(self.depends("libspillway-um-dev"), {"libc6", "libgcc-s1", "libstdc++6"})
        for plug_in in {"spillway-mpi", "spillway-cuda"} & set(self.files):
            self.assertIn("spillway", self.depends(plug_in))


class InBareDebian(PackagesCase):
    def test_install_work_and_go(self):
        if not bare_debian.is_debian12():
            skip("these packages are of another system than Debian 12")
        with bare_debian.enter() as debian:
            for package in ("spillway", "libspillway-um-dev"):
                shutil.copy(self.files[package], debian.root / "root" / f"{package}.deb")
            debian.run("apt-get install -y -qq --no-install-recommends ./*.deb gcc libc6-dev pkg-config")
            self.assertEqual(debian.run("spillway --version").split()[1], self.version)
            debian.run("spillway train --net lenet --batch 8 --steps 2 --budget min+50% --far file:/tmp "
                       "--json run.json && spillway report run.json && test -s report.html")
            shutil.copy(TESTS / "dropin/c/main.c", debian.root / "root/main.c")
            debian.run("cc -o drop-in main.c $(pkg-config --cflags --libs spillway_um) && ./drop-in")
            debian.run("apt-get purge -y -qq spillway libspillway-um-dev")
            self.assertEqual(debian.run("find /usr /etc -iname '*spillway*'"), "")


if __name__ == "__main__":
    unittest.main()
