# SPDX-License-Identifier: GPL-2.0-only
# For tests that check for leftovers: what the scheduler counts for tasks
# that wait is 0 once none does. To be sourced after lib.sh.
# shellcheck shell=bash disable=SC2154

# Sets refs, used and charged to what the slots of the wait-for graph say now.
read_slots() {
    run_scheduler memory --json
    [[ $output =~ \"lock_slots_used\":\ *([0-9]+) ]] || fail "no lock_slots_used in: $output"
    used=${BASH_REMATCH[1]}
    [[ $output =~ \"lock_refs\":\ *([0-9]+) ]] || fail "no lock_refs in: $output"
    refs=${BASH_REMATCH[1]}
    [[ $output =~ \"lock_slots_charged\":\ *([0-9]+) ]] || fail "no lock_slots_charged in: $output"
    charged=${BASH_REMATCH[1]}
}

# Others may wait for something just now, but not forever.
expect_slots_empty() {
    local end=$((SECONDS + patience))
    until read_slots && ((refs + used + charged == 0)); do
        ((SECONDS < end)) || break
    done
    expect "$refs" '==' 0 'references left'
    expect "$used" '==' 0 'slots left'
    expect "$charged" '==' 0 'slots charged to somebody'
}

# expect_queues_empty PORT: the work that waits on each CPU, by the metrics, has been 0.
expect_queues_empty() {
    local end=$((SECONDS + patience)) line page cpu queued
    local -A open=()
    while
        exec {page}<>"/dev/tcp/127.0.0.1/$1"
        printf 'GET /metrics HTTP/1.0\r\n\r\n' >&"$page"
        while read -rt "$patience" -u "$page" line; do
            [[ $line =~ cpu_queued_seconds\{cpu=\"([0-9]+)\"\}\ ([0-9.e-]+) ]] || continue
            cpu=${BASH_REMATCH[1]} queued=${BASH_REMATCH[2]}
            [[ ${open[$cpu]-} == closed ]] || open[$cpu]=$queued
            [[ ! $queued =~ ^[0.]+$ ]] || open[$cpu]=closed
        done
        exec {page}>&-
        ((${#open[@]} > 0)) || fail 'no queued work in the metrics'
        [[ ${open[*]} =~ [0-9] ]] && ((SECONDS < end))
    do :; done
    expect_text "${open[*]}" '^closed( closed)*$' 'work left on the CPUs'
}
