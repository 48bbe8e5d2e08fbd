# SPDX-License-Identifier: GPL-2.0-only
# Shared by the workloads in bench/: where their things are kept, a scratch
# folder for one run, building a workload's C program, and printing a metric.
# shellcheck shell=bash

bench_dir=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd -P)
workload=${bench_dir##*/}
root=${bench_dir%/bench/*}
# shellcheck source=scripts/lib/common.sh
source "$root/scripts/lib/common.sh"
prog="bench/$workload/${0##*/}"
# shellcheck disable=SC2034 # used by the workloads
kept=$cache/bench/$workload

# Sets `scratch` to an empty folder, in memory where there is one, so that no
# disk takes part in a measurement. It goes when the run ends.
make_scratch() {
    local base=${TMPDIR:-/tmp}
    [[ $(stat -f -c %T "$base") == tmpfs || ! -w /dev/shm ]] || base=/dev/shm
    scratch=$(mktemp -d "$base/freqlock-$workload.XXXXXX") || die "cannot make a folder in $base: set TMPDIR to one that can be written"
    trap 'rm -rf "$scratch"' EXIT
    # A shell killed by a signal runs its EXIT trap only if it catches it.
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

# compile [SOURCE [OPTION...]]: builds NAME.c of this workload, or another's
# source, with further options for the compiler. Linked statically, so that where
# it runs needs no library, unless `linking` is dynamic, for one to replace libc's
# locks; and renamed into place, so that a run never sees half of it.
linking=static
compile() {
    local program=$kept/$workload source=${1:-$bench_dir/$workload.c} cc=${CC:-gcc} new messages
    local -a link=()
    [[ $linking == dynamic ]] || link=(-static)
    [[ -x $program && -z $(find "$source" "$root"/bench/*.h "${BASH_SOURCE[0]}" -newer "$program") ]] && return 0
    have "$cc" || die "$cc is missing: run scripts/setup bench"
    mkdir -p "$kept" || die "cannot write $kept: set XDG_CACHE_HOME to a folder that can be written"
    new=$(mktemp "$program.XXXXXX")
    if ! messages=$("$cc" -std=gnu11 -O2 -Wall -Wextra -Werror -pthread "${link[@]}" -I "$root/lib" -o "$new" "$source" "${@:2}" 2>&1); then
        rm -f "$new"
        printf '%s\n' "$messages" >&2
        die "cannot build $source: $cc's messages are above (a static libc is in Debian's libc6-dev)"
    fi
    chmod 755 "$new"
    mv "$new" "$program"
}

# The program that `compile` has built.
compiled() {
    [[ -x $kept/$workload ]] || die "not prepared: run bench/$workload/prepare first"
    echo "$kept/$workload"
}

# freqlock-run, which replaces libc's locks; FREQLOCK_RUN names another.
freqlock_run() {
    local program=${FREQLOCK_RUN:-$root/target/release/freqlock-run}
    [[ -x $program ]] || die "$program is missing: run cargo build --release --workspace"
    echo "$program"
}

# number NAME VALUE: VALUE is a whole number above 0.
number() { [[ $2 =~ ^[1-9][0-9]*$ ]] || die "$1=$2 is not a whole number above 0"; }

# nice_values NAME COUNT LIST: so many nice values, separated by spaces; they are
# then in `values`.
nice_values() {
    local value
    # shellcheck disable=SC2034 # used by the workloads
    read -ra values <<<"$3"
    ((${#values[@]} == $2)) || die "$1=$3: $2 nice values are wanted"
    for value in "${values[@]}"; do
        [[ $value =~ ^-?[0-9]+$ ]] && ((value >= -20 && value <= 19)) || die "$1=$3: a nice value is in -20..19"
    done
}

# metric NAME VALUE UNIT lower|higher: which of the two is better.
metric() { printf '%s %s %s %s\n' "$1" "$2" "$3" "$4"; }

# Takes back what `prepare` has made.
remove_kept() { rm -rf "$kept"; }
