#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Says in words what comparisons have found, for scripts/demo.

Usage: verdict.py ROUNDS SCHEDULER JSON...

JSON are files of `scx_freqlock compare --json`, and ROUNDS is what their rounds are
called. A line for each metric of each workload, then a line with one word for all of it:
gain, loss (somewhere slower, nowhere faster), mixed, or none.
"""

import json
import sys

NAMES = {"kbuild": "build"}
WORDS = {
    "win": "a gain",
    "loss": "a loss",
    "level": "no difference that chance does not explain",
    "unknown": "too few for a verdict",
}


def values(record, row, scheduler):
    """By round, what the row's metric was under a scheduler."""
    found = {}
    for run in record["runs"]:
        if run["workload"] == row["workload"] and run["scheduler"] == scheduler and not run["warmup"]:
            for metric in run.get("metrics", []):
                if metric["name"] == row["metric"]:
                    found[run["round"]] = metric["value"]
    return found


def line(record, row, rounds):
    ours = values(record, row, row["scheduler"])
    theirs = values(record, row, record["baseline"])
    both = [(ours[nr], theirs[nr]) for nr in ours if nr in theirs]
    ratio = row["ratio"]["median"]
    agree = sum((our - their) * (ratio - 1) > 0 for our, their in both)
    name = NAMES.get(row["workload"], row["workload"])
    metric = row["metric"].replace("_", " ").replace("cpu", "CPU")
    change = f"{abs(ratio - 1) * 100:.0f}% {'less' if ratio < 1 else 'more'} {metric}"
    return f"{name}: {change}, {agree} of {len(both)} {rounds}: {WORDS[row['verdict']]}"


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    rounds, scheduler, *files = sys.argv[1:]
    verdicts = set()
    for file in files:
        with open(file, encoding="utf-8") as opened:
            record = json.load(opened)
        for row in record["summary"]:
            if row["scheduler"] == scheduler and row["verdict"]:
                verdicts.add(row["verdict"])
                print(line(record, row, rounds))
    gain, loss = "win" in verdicts, "loss" in verdicts
    print("mixed" if gain and loss else "gain" if gain else "loss" if loss else "none")


if __name__ == "__main__":
    main()
