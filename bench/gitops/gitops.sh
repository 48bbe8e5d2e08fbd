#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# A repository's life: gitops.sh COMMITS makes the folders work and clone here.
set -eu

git init -q -b main work
cd work
git config gc.auto 0
for file in one two three four five six; do
	seq 1 200 >"$file"
done
git add .
git commit -q -m start

git checkout -q -b side
echo side >three
git commit -q -a -m side

# Every second commit is on the side branch.
number=1
while [ "$number" -le "$1" ]; do
	if [ $((number % 2)) = 0 ]; then
		git checkout -q side
		echo "$number" >>one
	else
		git checkout -q main
		echo "$number" >>two
	fi
	git status --short
	git diff --stat
	git commit -q -a -m "change $number"
	number=$((number + 1))
done
git checkout -q main
git merge -q --no-ff -m merge side
git log --stat --oneline | tail -n 1
git repack -q -a -d
git fsck
cd ..
git clone -q work clone
