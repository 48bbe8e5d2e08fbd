# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# What part of the CPU time of two groups of tasks one of them has. Sourced after lib.sh.

# ticks NAME TASK...: adds up what these tasks have run in ${ticks[NAME]}.
declare -A ticks=()
ticks() {
    local name=$1 task stat
    shift
    ticks[$name]=0
    for task in "$@"; do
        read -ra stat < <(cat /proc/[0-9]*/task/"$task"/stat)
        ticks[$name]=$((ticks[$name] + stat[13] + stat[14]))
    done
}

# permille SECONDS TASKS OTHERS: what the first of two lists of tasks runs of what both do.
permille() {
    # shellcheck disable=SC2086 # lists of numbers
    ticks one $2 && ticks other $3
    local one=${ticks[one]} other=${ticks[other]}
    read -rt "$1" <> <(:) || true
    # shellcheck disable=SC2086
    ticks one $2 && ticks other $3
    one=$((ticks[one] - one)) other=$((ticks[other] - other))
    expect $((one + other)) '>' 0 'ticks that tasks of two groups ran'
    permille=$((one * 1000 / (one + other)))
}
