"""How the CUDA side alone is built: its compilations, archives and links, as ninja knows them."""

import os
import pathlib
import re
import shlex
import shutil

from gpu_bench import BUILD, ROOT, call

OURS = re.compile(r"^(src|um)/cuda/")  # outputs below BUILD that are built anew
IN_GLIBC = re.compile(r"/lib(rt|pthread|dl|m)\.(a|so)$")
PACKED_LINK = "packed-link"  # folder below BUILD with other machines' libraries


def ninja(*words):
    return call(["ninja", "-C", BUILD, *words]).splitlines()


def output_of(words):
    return words[words.index("-o") + 1]


def without_errors(words):
    """Another compiler may warn of more."""
    return [re.sub(r",?-Werror$", "", word) for word in words if "Werror" not in word
            or word.startswith("--compiler-options")]


def parts_of(command):
    """The shell commands of one of ninja's."""
    return [shlex.split(part) for part in command.split(" && ") if part.strip() != ":"]


def is_archive(words):
    return pathlib.Path(words[0]).name == "ar"


class Plan:
    """What to run to make `targets`, paths below BUILD, from what `files` names."""

    def __init__(self, targets):
        self.compilations, self.archives, self.links = [], [], []
        self.files = {}  # by path below ROOT
        made = set()
        for target in targets:
            for command in ninja("-t", "commands", target):
                if not command.startswith("ninja:") and command not in made:
                    made.add(command)
                    self.add(parts_of(command), targets)
        for words in self.compilations:
            self.add_dependencies(output_of(words))

    def add(self, parts, targets):
        for words in parts:
            # The machine with the GPU may have neither.
            words = [word for word in words if os.path.basename(word) != "ccache" and word[:9] != "-fuse-ld="]
            if is_archive(words) and OURS.match(words[2]):
                self.archives.append(words)
            elif "-c" in words and OURS.match(output_of(words)):
                self.compilations.append(without_errors(words))
            elif "-o" in words and "-c" not in words and output_of(words) in targets:
                self.links.append([self.link_word(word) for word in words])

    def link_word(self, word):
        """A word of a link, whose input is packed unless it is CUDA's or built anew."""
        if not re.search(r"\.(a|o|so)(\.[0-9.]+)?$", word) or word.startswith("-"):
            return word
        if not word.startswith("/"):
            if not OURS.match(word):
                self.pack(BUILD / word)
            return word
        if IN_GLIBC.search(word):
            return "-l" + IN_GLIBC.search(word)[1]
        if "/cuda" in word:
            return word
        name = f"{PACKED_LINK}/{pathlib.Path(word).name}"
        self.files[(BUILD / name).relative_to(ROOT)] = pathlib.Path(word)
        return name

    def add_dependencies(self, output):
        for line in ninja("-t", "deps", output)[1:]:
            path = pathlib.Path(os.path.normpath(BUILD / line.strip()))  # ccache's are relative
            if line.strip() and path.is_relative_to(ROOT):
                self.pack(path)

    def pack(self, path):
        if path.is_file() and not any(path == ROOT / output for output in self.files):
            self.files[path.relative_to(ROOT)] = path

    def json(self):
        return {"root": str(ROOT), "compilations": self.compilations, "archives": self.archives,
                "links": self.links}


def can_plan():
    return shutil.which("ninja") is not None and (BUILD / "build.ninja").is_file()
