#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Say which files repeat a list that stands elsewhere, and so must be touched when it grows.

Usage: lists.py FILE...

Modes, sources of speed and knobs are tables, workloads and tests are the files that there
are. A file that names three quarters of one list, or eight names, within as many lines repeats
it. Documents may, and what is said below. Prints a line for each other one; exit status 1 if
there are any.
"""

import pathlib
import re
import sys

# What names most of a list for a reason of its own, which is not that it needs all of it.
MAY = {
    "bpf/knobs.h": "modes",  # of which a knob is
    "tests/changed.table": "tests",  # by files that break them
    "scripts/lib/retired.table": "knobs",  # which had other names
    "tests/vm/modes.test": "modes",  # what each of them counts
    "scripts/measure": "modes",  # what each of them is to be measured by
    "lab/src/compare/bench_tests.rs": "workloads",  # a wrong parameter of each
}


def table(path, macro):
    return re.findall(rf'^{macro}\(\w+, "([\w-]+)"', pathlib.Path(path).read_text("utf-8"), re.M)


def lists():
    knobs = pathlib.Path("bpf/knobs.h").read_text("utf-8")
    return {
        "modes": ("bpf/modes.h", table("bpf/modes.h", "MODE")),
        "sources": ("bpf/sources.h", table("bpf/sources.h", "SOURCE")),
        "knobs": ("bpf/knobs.h", re.findall(r"^KNOB\((\w+)", knobs, re.M)),
        "workloads": ("bench/", [run.parent.name for run in pathlib.Path("bench").glob("*/run")]),
        "tests": ("tests/vm/", [test.stem for test in pathlib.Path("tests/vm").glob("*.test")]),
    }


def repeated(text, names):
    """The first line of a stretch that names most of them, or None."""
    enough = min(8, -(-len(names) * 3 // 4))
    word = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])")
    found = [set(word.findall(line)) for line in text.splitlines()]
    for first in range(len(found)):
        if len(set().union(*found[first : first + enough])) >= enough:
            return first + 1
    return None


def main():
    bad = False
    known = lists()
    for path in sys.argv[1:]:
        if path.startswith("docs/") or path.endswith(".md"):
            continue
        try:
            text = pathlib.Path(path).read_text("utf-8")
        except (UnicodeDecodeError, OSError):
            continue
        for what, (home, names) in known.items():
            if path == home or MAY.get(path) == what:
                continue
            line = repeated(text, names)
            if line:
                bad = True
                print(f"{path}:{line}: repeats the list of {what}, which is {home}")
    sys.exit(bad)


if __name__ == "__main__":
    main()
