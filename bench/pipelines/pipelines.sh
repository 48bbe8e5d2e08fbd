#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# What shell scripts do with text: pipelines of seven programs, each of which starts,
# reads what the one before writes, and ends. pipelines.sh COUNT LINES
set -eu

number=0
while [ "$number" -lt "$1" ]; do
	seq 1 "$2" | sed 's/^/line /' | grep line | tr "[:lower:]" "[:upper:]" | sed 's/.*\(.\)$/\1/' | sort -u | wc -l
	number=$((number + 1))
done
