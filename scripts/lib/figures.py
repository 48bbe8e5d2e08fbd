#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Say which tables of figures in README.md and docs/ are not those that were measured.

Usage: figures.py

docs/figures.tsv has a line for each table with figures: its file, the digest of its cells, and
the beginning of the command that made them, which stands in that file; "see FILE" names another
that has the commands, and "= why" stands for numbers that are no measurements. So a figure that is changed by hand fails, until somebody
says anew which command gave it. docs/BENCHMARKS.md is held against its runs by the lab's tests.
Prints a line for each fault; exit status 1 if there are any.
"""

import hashlib
import pathlib
import re
import sys

TABLE = "docs/figures.tsv"
GENERATED = {"docs/BENCHMARKS.md"}
# At least this many cells that begin with a number make a table one of figures.
LEAST = 4
NUMBER = re.compile(r"[*~±+-]*\d[\d.,]*")


def flat(text):
    return " ".join(text.split())


def tables(path):
    """The line of each table of figures, and its cells."""
    lines = path.read_text("utf-8").split("\n")
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and lines[end].startswith("|"):
            end += 1
        cells = [flat(cell) for line in lines[at:end] for cell in line.strip("|").split("|")]
        if sum(1 for cell in cells if NUMBER.match(cell)) >= LEAST:
            yield at + 1, cells
        at = max(end, at + 1)


def digest(cells):
    return hashlib.sha256("|".join(cells).encode()).hexdigest()[:12]


def main():
    faults = []
    known = {}
    for nr, line in enumerate(pathlib.Path(TABLE).read_text("utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        words = line.split("\t")
        if len(words) != 3 or not words[2].strip("= "):
            faults.append(f"{TABLE}:{nr}: not FILE, DIGEST and COMMAND with tabs between them")
            continue
        known[words[0], words[1]] = nr, words[2]
    seen = set()
    for path in [pathlib.Path("README.md"), *sorted(pathlib.Path("docs").glob("*.md"))]:
        if str(path) in GENERATED:
            continue
        text = flat(path.read_text("utf-8"))
        for nr, cells in tables(path):
            key = str(path), digest(cells)
            seen.add(key)
            if key not in known:
                faults.append(f"{path}:{nr}: which command gave these figures? {TABLE} has no line {key[1]}")
                continue
            line, command = known[key]
            if command.startswith("see "):
                if not pathlib.Path(command.removeprefix("see ")).is_file():
                    faults.append(f"{TABLE}:{line}: there is no such file")
            elif not command.startswith("=") and command not in text:
                faults.append(f"{TABLE}:{line}: that command does not stand in {path}")
    for (path, which), (nr, _) in known.items():
        if (path, which) not in seen:
            faults.append(f"{TABLE}:{nr}: {path} has no table {which}: was a figure changed by hand?")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
