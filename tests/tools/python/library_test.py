"""The library: that it is found, and that the structs are those of the C header."""

import os
import pathlib
import re
import tempfile
import unittest
from unittest import mock

import importing
from spillway_um import library


def c_header():
    text = (importing.ROOT / "um" / "dropin" / "spillway_um.h").read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def struct_fields(name):
    """C type and name of each field, in order."""
    body = re.search(r"struct " + name + r" \{(.*?)\}", c_header(), re.DOTALL)[1]
    return [re.fullmatch(r"(.*?)(\w+)", field.strip()).groups()
            for field in body.split(";") if field.strip()]


C_TYPES = {"uint32_t": "c_uint", "int32_t": "c_int", "uint64_t": "c_ulong", "double": "c_double",
           "const char*": "c_char_p"}


class Header(unittest.TestCase):
    def expect_same(self, name, structure):
        theirs = [(C_TYPES[c_type.strip()], field) for c_type, field in struct_fields(name)]
        ours = [(c_type.__name__, field) for field, c_type in structure._fields_]
        self.assertEqual(ours, theirs)

    def test_structs_are_ours(self):
        self.expect_same("spillway_um_options", library.Options)
        self.expect_same("spillway_um_counters", library.CounterValues)
        self.expect_same("spillway_um_space", library.Handle)

    def test_versions_and_numbers_are_ours(self):
        header = c_header()
        for name, number in {"OPTIONS_VERSION": library.OPTIONS_VERSION,
                             "COUNTERS_VERSION": library.COUNTERS_VERSION}.items():
            self.assertRegex(header, rf"#define SPILLWAY_UM_{name} {number}\n")
        for names, prefix in ((library.ACCESS, ""), (library.ADVICE, "ADVICE_"),
                              ({n: i for i, n in enumerate(library.STATUS_NAMES)}, "")):
            for name, number in names.items():
                c_name = prefix + name.upper().replace(" ", "_")
                self.assertRegex(header, rf"\bSPILLWAY_UM_{c_name} = {number}\b")


class Finding(unittest.TestCase):
    def test_the_variable_names_the_only_candidate(self):
        with mock.patch.dict(os.environ, {"SPILLWAY_UM_LIBRARY": "/no/such.so"}):
            self.assertEqual(library.candidates(), ["/no/such.so"])
            with self.assertRaisesRegex(library.Error, "/no/such.so.*set SPILLWAY_UM_LIBRARY"):
                library.load()

    def test_then_beside_the_package_then_the_system_then_the_tree(self):
        with tempfile.TemporaryDirectory() as name:
            package = pathlib.Path(name) / "tools" / "python" / "spillway"
            built = pathlib.Path(name) / "build" / "release" / "bin" / library.FILE_NAME
            for folder in (package, built.parent):
                folder.mkdir(parents=True)
                (folder / library.FILE_NAME).touch()
            environment = {k: v for k, v in os.environ.items() if k != "SPILLWAY_UM_LIBRARY"}
            with mock.patch.dict(os.environ, environment, clear=True), \
                    mock.patch.object(library, "__file__", str(package / "library.py")):
                self.assertEqual(library.candidates(), [
                    package / library.FILE_NAME, "libspillway_um.so", built])

    def test_a_path_that_is_given_counts(self):
        path = library.load().path
        with mock.patch.dict(os.environ, {"SPILLWAY_UM_LIBRARY": "/no/such.so"}):
            self.assertRegex(library.load(path).version(), r"^\d+\.\d+\.\d+$")

    def test_another_library_is_named_as_such(self):
        with self.assertRaisesRegex(library.Error, "libc.so.6 is not the drop-in allocator"):
            library.load("libc.so.6")
