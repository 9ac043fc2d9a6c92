"""What a power cut may leave of a folder: states that its writes and flushes allow.

A file's content is sure up to its last fsync; of later writes any beginning may be there, the last of
them in part or as zeros. A name is sure once its folder has been flushed after it was made, renamed or
removed; of later changes any may be there, each name's own in their order.
"""

import os
import pathlib
import struct

HEADER = struct.Struct("<cIQQ")  # RecordHeader in disk_log.cpp


class File:
    def __init__(self, content=b""):
        self.sure = content
        self.unsure = []  # writes and truncations since the last flush

    def content(self, random):
        """What is found after the cut."""
        changes = self.unsure[:random.randint(0, len(self.unsure))]
        if changes and changes[-1][0] == b"W" and random.random() < 0.5:
            kind, offset, data = changes[-1]
            torn = data[:random.randint(0, len(data))]
            changes[-1] = kind, offset, torn if random.random() < 0.5 else bytes(len(torn))
        return changed(self.sure, changes)

    def flush(self):
        self.sure = changed(self.sure, self.unsure)
        self.unsure = []


def changed(content, changes):
    """A file's content after writes and truncations."""
    for kind, offset, data in changes:
        before = content[:offset].ljust(offset, b"\0")
        content = before if kind == b"T" else before + data + content[offset + len(data):]
    return content


class Disk:
    """One folder, from what it held when the recording began."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.names = {}  # as the program sees them
        if self.folder.is_dir():
            self.names = {path.name: File(path.read_bytes()) for path in self.folder.iterdir()}
        self.sure = dict(self.names)  # as the disk has them
        self.unsure = []  # changes of names since the folder's last flush: {name: file or None}

    def replay(self, log):
        """Takes over the records of disk_log.cpp."""
        data = pathlib.Path(log).read_bytes() if pathlib.Path(log).exists() else b""
        at = 0
        while at + HEADER.size <= len(data):
            kind, path_size, offset, size = HEADER.unpack_from(data, at)
            at += HEADER.size
            path = pathlib.Path(data[at:at + path_size].decode())
            content = data[at + path_size:at + path_size + size]
            at += path_size + size
            if at > len(data):
                break  # the program was killed while it wrote this record
            self.apply(kind, path, offset, content)

    def apply(self, kind, path, offset, content):
        if path == self.folder:
            if kind == b"S":
                self.flush_names()
            return
        if path.parent != self.folder:
            return
        name = path.name
        if kind == b"C":
            self.change({name: File()})
        elif kind == b"R":
            self.change({name: None, pathlib.Path(content.decode()).name: self.names[name]})
        elif kind == b"U":
            self.change({name: None})
        elif kind == b"S":
            self.names[name].flush()
        else:
            self.names[name].unsure.append((kind, offset, content))

    def change(self, names):
        self.unsure.append(names)
        put(self.names, names)

    def flush_names(self):
        self.sure = dict(self.names)
        self.unsure = []

    def holds_surely(self, name):
        """Whether the name is there in every state that a cut may leave."""
        return name in self.sure and all(change.get(name, self) is not None
                                         for change in self.unsure)

    def content(self, name):
        """What the program would read, or None."""
        file = self.names.get(name)
        return None if file is None else changed(file.sure, file.unsure)

    def sure_content(self, name):
        """What every cut leaves under this name at least, or None."""
        return self.sure[name].sure if self.holds_surely(name) else None

    def cut(self, random):
        """Makes the folder one of the states that are possible now."""
        names = dict(self.sure)
        lost = set()
        for change in self.unsure:
            if lost.isdisjoint(change) and random.random() < 0.5:
                put(names, change)
            else:
                lost |= set(change)
        contents = {name: file.content(random) for name, file in names.items()}
        for path in self.folder.iterdir():
            os.unlink(path)
        for name, content in contents.items():
            (self.folder / name).write_bytes(content)


def put(names, change):
    for name, file in change.items():
        if file is None:
            names.pop(name, None)
        else:
            names[name] = file
