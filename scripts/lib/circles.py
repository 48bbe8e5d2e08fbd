#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Say which modules of the crates, or files and rooms of bpf/, depend on each other in a circle.

Usage: circles.py

Prints a line for each circle, and one for each name that two modules have; exit status
1 if there are any. Code of tests does not count. Each folder is looked at by itself: its
files, its folders as a whole, and its own module. A `pub use` of a child is no use of it:
whoever takes the name from there uses the child. A room of bpf/ is a .bpf.c file with the
headers of its name.
"""

import os
import re
import sys
from collections import defaultdict

CRATES = {"src": "lib.rs", "scheds/scx_freqlock/src": "main.rs", "lab/src": "main.rs",
          "lib/libfreqlock/src": "lib.rs", "lib/cpus/src": "lib.rs", "lib/jobserver/src": "main.rs",
          "lib/friendlypool/src": "lib.rs"}
PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")
USE = re.compile(r"^\s*(pub(?:\([a-z]+\))? )?use ([^;]+);", re.M)
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.M)


def read(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return re.sub(r"//.*", "", text)


def expand(use):
    """The paths of a use declaration, its braces taken apart."""
    use = re.sub(r"\s+", " ", use)
    opened = use.find("{")
    if opened < 0:
        return [use.split(" as ")[0].strip()]
    paths, part, depth = [], "", 0
    for char in use[opened + 1 : use.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            paths += [use[:opened].strip() + path for path in expand(part)] if part.strip() else []
            part = ""
        else:
            part += char
    return [path.removesuffix("::self") for path in paths]


def modules_of(root, main):
    """The text of each module, by its path as a tuple; those of tests left out."""
    found, todo = {}, [((), os.path.join(root, main))]
    while todo:
        name, path = todo.pop()
        text = read(path)
        text = re.split(r"#\[cfg\(test\)\]\s+(?:pub(?:\([a-z]+\))? )?mod \w+ \{", text)[0]
        text = re.sub(r"#\[cfg\(test\)\]\s+(?:pub(?:\([a-z]+\))? )?mod \w+;", "", text)
        found[name] = text
        folder = os.path.join(root, *name)
        for child in re.findall(r"^(?:pub(?:\([a-z]+\))? )?mod (\w+);", text, re.M):
            for file in (f"{child}.rs", f"{child}/mod.rs"):
                if os.path.exists(os.path.join(folder, file)):
                    todo.append((name + (child,), os.path.join(folder, file)))
    return found


def uses(modules):
    """Pairs of modules of which the first uses the second."""

    def resolve(base, words, depth=0):
        module = base
        for word in words:
            if module + (word,) in modules:
                module += (word,)
                continue
            origin = exported[module].get(word)
            if origin is not None and depth < 8:
                return resolve(*origin, depth + 1)
            break
        return module

    def locate(name, path):
        words = path.split("::")
        base = name
        if words[0] == "crate":
            return (), words[1:]
        while words and words[0] in ("self", "super"):
            base = base[:-1] if words[0] == "super" else base
            words = words[1:]
        if words == path.split("::") and name + (words[0],) not in modules:
            return None
        return base, words

    exported, wanted = defaultdict(dict), []
    for name, text in modules.items():
        for public, use in USE.findall(text):
            for path in expand(use):
                found = locate(name, path)
                if found and public:
                    exported[name][path.split("::")[-1]] = found
                elif found:
                    wanted.append((name, found))
        for path in PATH.findall(USE.sub("", text)):
            if found := locate(name, path):
                wanted.append((name, found))
    return {(name, resolve(*found)) for name, found in wanted}


def circles(edges):
    """Circles of a graph, each as the list of its nodes; none of them shares a node."""
    follows = defaultdict(set)
    for one, other in edges:
        follows[one].add(other)
    while follows:
        # What leads to nothing is in no circle, nor is what only leads to such things.
        ends = [node for node, after in follows.items() if not after & follows.keys()]
        for node in ends:
            del follows[node]
        if ends:
            continue
        way = [min(follows)]
        while way.count(way[-1]) < 2:
            way.append(min(follows[way[-1]] & follows.keys()))
        way = way[way.index(way[-1]) :]
        yield " -> ".join(way)
        for node in set(way):
            del follows[node]


def by_folder(pairs):
    """The same pairs as edges between what lies in one folder, by folder."""
    edges = defaultdict(set)
    for one, other in pairs:
        common = 0
        while common < min(len(one), len(other)) and one[common] == other[common]:
            common += 1
        # A folder's own module has no name in it.
        ends = tuple((path[common : common + 1] or ("mod",))[0] for path in (one, other))
        if ends[0] != ends[1]:
            edges[one[:common]].add(ends)
    return edges


def room_of(path):
    """The room that a file of bpf/ belongs to; the file itself if it has none."""
    room = os.path.join(os.path.dirname(path), os.path.basename(path).split(".")[0])
    return room if os.path.exists(f"{room}.bpf.c") else path


def main():
    bad, places = [], defaultdict(list)
    for root, file in CRATES.items():
        modules = modules_of(root, file)
        for name in modules:
            if name:
                places[name[-1]].append("/".join((root, *name)))
        for folder, edges in sorted(by_folder(uses(modules)).items()):
            bad += [f"{'/'.join((root, *folder))}: {way}" for way in circles(edges)]
    for name, paths in sorted(places.items()):
        if len(paths) > 1:
            bad.append(f"two modules of one name: {', '.join(sorted(paths))}")
    includes = set()
    for folder, _, files in os.walk("bpf"):
        for path in (os.path.join(folder, file) for file in files):
            for other in INCLUDE.findall(read(path)):
                near = os.path.normpath(os.path.join(folder, other))
                includes.add((path, near if os.path.exists(near) else f"bpf/{other}"))
    between = {(room_of(one), room_of(other)) for one, other in includes}
    bad += list(circles(includes)) or circles({ends for ends in between if ends[0] != ends[1]})
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


sys.exit(main())
