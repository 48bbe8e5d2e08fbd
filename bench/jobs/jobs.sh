#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# What scripts do that want to be fast: parts of the work in the background, then wait.
# Jobs are of different lengths, and what follows needs all of them. jobs.sh ROUNDS AT_ONCE
set -eu

job() {
	seq 1 $(($1 * 300)) >"part-$1"
	sed -n '$p' "part-$1" >"last-$1"
	sort -r "part-$1" | head -n 1 >/dev/null
	if grep -qx $(($1 * 300)) "last-$1"; then
		echo found
	fi
}

round=0
while [ "$round" -lt "$1" ]; do
	number=1
	while [ "$number" -le "$2" ]; do
		job "$number" &
		number=$((number + 1))
	done
	wait
	cat part-* | wc -l >"total"
	round=$((round + 1))
done
