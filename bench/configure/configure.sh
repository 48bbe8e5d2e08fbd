#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# What the configure scripts of autoconf do all day, without the compiler: short
# processes one after another, in pipes and command substitutions, each doing
# next to nothing. configure.sh CHECKS writes config.h into the current folder;
# one check is about a dozen processes.
set -eu

# Like AC_CHECK_HEADER: make a file, look for something in it, note the answer.
check() {
	number=$1
	name=$(echo "have-feature-$number" | tr a-z- A-Z_)
	cat >conftest.txt <<-END
		#define $name 1
		int main(void) { return $number; }
	END
	if grep "^#define $name" conftest.txt >/dev/null; then
		value=$(sed -n "s/.*return \([0-9]*\).*/\1/p" conftest.txt)
	else
		value=0
	fi
	next=$(expr "$value" + 1)
	base=$(basename "/usr/include/$name.h" .h)
	echo "#define $base $next" | sed 's/^#define/#  define/' | cat >>config.h
	rm -f conftest.txt
}

number=0
while [ "$number" -lt "$1" ]; do
	check "$number"
	number=$((number + 1))
done
