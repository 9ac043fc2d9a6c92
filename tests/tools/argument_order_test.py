"""tools/argument_order: the tree has no such call, and those it is about are found."""

import pathlib
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "argument_order"


def run(*files):
    return subprocess.run([TOOL, *files], capture_output=True, text=True, check=False)


class ArgumentOrder(unittest.TestCase):
    def found_in(self, code):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "code.cpp"
            path.write_text(code, encoding="utf-8")
            return run(path).stderr.replace(f"{path}:", "")

    def test_does_not_matter_in_this_tree(self):
        done = run()
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_matters_where_one_argument_writes_another(self):
        for code in ("return taken(cudaMalloc(entered(&address), size.count()), address, size);",
                     "f(a,\n  g(1, &a));", "f(std::move(a), a.size());",
                     'name(paging ? "host" : device.name(), std::move(paging));',
                     "f(x.a.first(), std::move(x.a));", "f(g(&x), x + 1);", "f(g(&x), *x);",
                     "f(g(&x), x.size());", "f(g(&x, &y), x);", "f(g(&x), h(&x) + x);",
                     "f(static_cast<unsigned>(check(cudaMalloc(&p, n))),\n"
                     "  static_cast<std::byte*>(p));"):
            self.assertIn("C++ does not say which comes first", self.found_in(code), code)

    def test_does_not_matter_elsewhere(self):
        for code in ("f(&a, a);", "f(g(&a), &a);", "check(g(&a));\nuse(a);", "f(a & b, g(c));",
                     "f(own.type, std::move(own.attributes));", "f(g(&a.b), a);",
                     'f(g("&a"), a);  // f(g(&a), a)', "f([&] { return g(&a); }, a);",
                     "T t{g(&a), a};", "f({.a = std::move(a)}, {.a = b});",
                     "f(g(&a), h(&a));", "f(g(&a), b.a);", "f(g(&a), sizeof(a));",
                     "if (f(&x), x) {}", "while (f(&x), x > 1) {}", "if(f(&x), x) {}"):
            self.assertEqual(self.found_in(code), "", code)


if __name__ == "__main__":
    unittest.main()
