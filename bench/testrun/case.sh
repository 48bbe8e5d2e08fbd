#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# One small test, as test runners start them by the dozen: it sets a folder up, runs some
# programs on inputs of three lengths, compares what came out with what should, and takes
# the folder back. case.sh NUMBER
set -eu
number=$1
mkdir "case-$number"
cd "case-$number"

for lines in 200 300 400; do
	seq 1 $((lines + number)) >input
	echo $((lines + number)) >expected
	awk '{ sum += $1; n++ } END { print n }' input >count
	if ! cmp -s count expected; then
		echo "not ok $number: $(cat count) lines"
		exit 1
	fi
	sed 's/^/value: /' input | grep -c value >again
	diff again expected >/dev/null
	tail -n 1 input >last
	[ "$(cat last)" = "$(cat expected)" ]
	tr 0-9 a-j <input | sort | cut -c1 | uniq -c | wc -l >letters
	[ "$(cat letters)" = 9 ]
done
cd ..
rm -r "case-$number"
echo "ok $number"
