# SPDX-License-Identifier: GPL-2.0-only
# What every VM test stands on: a scheduler that is started and stopped, loads
# and what they saw, statistics, and expectations. A test is a script that
# sources this file; it passes when it ends well and expected something.
#
# Under emulation each new process costs 50 ms, so bash's own means come first.
# shellcheck shell=bash
set -euo pipefail
shopt -s inherit_errexit lastpipe

root=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd -P)
# tests/vm/run has copies of the programs where they start faster.
scheduler=${FREQLOCK_PROGRAMS:-$root/target/release}/scx_freqlock
loads=${FREQLOCK_PROGRAMS:-$root/target/tests}
load=$loads/load
locks=$loads/locks
order=$loads/order
badlocks=$loads/badlocks
quota=$loads/quota
groups=$loads/groups
spinner=$loads/spinner
figures=$loads/figures
terminal=$loads/terminal
cpus=$loads/cpus
speeds=$loads/speeds
hostile=$loads/hostile
churn=$loads/churn
gaps=$loads/gaps
apart=$loads/apart
moved=$loads/moved
pairs=$loads/pairs
answers=$loads/answers
# shellcheck source=scripts/lib/scheduler.sh
source "$root/scripts/lib/scheduler.sh"

# Longest wait, in seconds, for what a working system does at once.
patience=120

expectations=0
log=''            # what the scheduler has said so far
scheduler_pid=''
background=()     # processes to end with the test
litter=()         # files and folders to remove at its end
declare -A got=() stat=()

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# expect A OP B WHAT: two numbers compared as in arithmetic.
expect() {
    expectations=$((expectations + 1))
    [[ $1 =~ ^-?[0-9]+$ && $3 =~ ^-?[0-9]+$ ]] || fail "$4: '$1' or '$3' is not a number"
    let "$1 $2 $3" || fail "$4: expected $2 $3, not $1"
}

# expect_text TEXT REGEX WHAT
expect_text() {
    expectations=$((expectations + 1))
    [[ $1 =~ $2 ]] || fail "$3: expected /$2/ in: $1"
}

# refuse_text TEXT REGEX WHAT
refuse_text() {
    expectations=$((expectations + 1))
    [[ ! $1 =~ $2 ]] || fail "$3: '${BASH_REMATCH[0]}' in: $1"
}

# ---- the scheduler ----

# await_state STATE [OPS]
await_state() { scx_await "$patience" "$@" || fail "sched_ext stays $scx_state, not $1"; }

# Runs the scheduler without waiting for anything; it talks into a pipe. CPUs are
# equally fast unless a test says otherwise: what a busy host does to emulated
# ones would be measured as speeds and migration costs.
launch() {
    log=''
    exec {scheduler_out}< <(exec "$scheduler" --no-calibrate --speed-floor=1024 "$@" 2>&1)
    scheduler_pid=$!
}

# Starts the scheduler and returns when the kernel schedules with it.
start_scheduler() {
    launch "$@"
    await_log 'enabled after'
    scx_look
    expect_text "$scx_state" '^enabled$' 'sched_ext/state'
    expect_text "$scx_ops" '^freqlock' 'sched_ext/root/ops'
}

# await_log REGEX: reads what the scheduler says until a line matches.
await_log() {
    local line
    while read -rt "$patience" -u "$scheduler_out" line; do
        log+=$line$'\n'
        [[ ! $line =~ $1 ]] || return 0
    done
    fail "the scheduler did not say /$1/, but:"$'\n'"$log"
}

# Reads the scheduler's last words and its exit status, into $log and $status.
await_exit() {
    local line
    while read -rt "$patience" -u "$scheduler_out" line; do
        log+=$line$'\n'
    done
    scx_reap "$scheduler_pid"
    status=$scx_status
    scheduler_pid=''
    exec {scheduler_out}<&-
}

# stop_scheduler [SIGNAL]: it must go in peace and leave nothing loaded.
stop_scheduler() {
    kill -s "${1:-TERM}" "$scheduler_pid"
    await_exit
    expect "$status" '==' 0 "exit status after ${1:-TERM}; it said: $log"
    await_state disabled
}

# run_scheduler ARGS...: for calls that end by themselves: $output and $status.
run_scheduler() {
    status=0
    output=$(RUST_BACKTRACE=1 timeout "$patience" "$scheduler" "$@" 2>&1) || status=$?
}

# Sets modes to those that the scheduler knows.
read_modes() {
    run_scheduler knobs --json
    [[ $output =~ '"values": ['([^]]*)']' ]] || fail "no modes in what knobs says: $output"
    # shellcheck disable=SC2206 # several words on purpose
    modes=(${BASH_REMATCH[1]//[,\"]/ })
}

# The scheduler refused in the way that it promises: a line, no stack trace.
expect_refusal() {
    local want_status=$1 want_text=$2
    expect "$status" '==' "$want_status" "exit status; it said: $output"
    expect_text "$output" "$want_text" 'the line that says what to do'
    refuse_text "$output" 'backtrace|panicked|RUST_BACKTRACE|[[:space:]]at src/' 'a stack trace'
    scx_look
    expect_text "$scx_state" '^(disabled|absent)$' 'sched_ext/state'
}

# ---- loads ----

# run_load COMMAND [name=value...]: what it saw is in ${got[name]}.
run_load() { run_program "$load" "$@"; }

# The same for the loads of locks.
run_locks() { run_program "$locks" "$@"; }
run_order() { run_program "$order" "$@"; }
run_apart() { run_program "$apart" "$@"; }
run_gaps() { run_program "$gaps" "$@"; }
run_moved() { run_program "$moved" "$@"; }
run_pairs() { run_program "$pairs" "$@"; }
run_answers() { run_program "$answers" "$@"; }
run_badlocks() { run_program "$badlocks" "$@"; }
run_quota() { run_program "$quota" "$@"; }
run_groups() { run_program "$groups" "$@"; }

run_program() {
    local line pair
    got=()
    line=$("$@") || fail "${1##*/} ${*:2} failed"
    for pair in $line; do
        got[${pair%%=*}]=${pair#*=}
    done
    echo "${1##*/} ${*:2}: $line"
}

# run_machine CPUS SCRIPT [EDIT]: a script of this folder on a simulated machine of its own, the
# tests' machine with so many CPUs and what sed makes of its description; sets output.
run_machine() {
    local machine
    machine=$(mktemp --suffix=.toml)
    litter+=("$machine")
    sed "s/^cpus = .*/cpus = $1/${3:+; $3}" "$root/tests/vm/sim.toml" >"$machine"
    status=0
    output=$("$root/target/release/scx_freqlock" machine run "$machine" --limit-s 200 \
        --kit "$root/target/machine/x86_64/tests-newest.toml" -- bash "tests/vm/$2" 2>&1) || status=$?
    echo "$output"
    expect "$status" '==' 0 "exit status with $1 CPUs"
}

# hold [name=value...]: busy loops from now on, until the test ends.
hold() {
    local fd line
    exec {fd}< <(exec "$load" hold "$@")
    background+=($!)
    read -rt "$patience" -u "$fd" line || fail "load hold $* does not begin"
    [[ $line == holding=* ]] || fail "load hold $*: $line"
}

# ---- statistics ----

# Fills ${stat[name]} with the counts since the scheduler started.
read_stats() {
    local rest
    rest=$("$scheduler" counters --json) || fail "no statistics from the scheduler"
    stat=()
    while [[ $rest =~ \"([a-z0-9_]+)\":\ *([0-9]+)(.*) ]]; do
        stat[${BASH_REMATCH[1]}]=${BASH_REMATCH[2]}
        rest=${BASH_REMATCH[3]}
    done
    ((${#stat[@]} > 10)) || fail "these are no statistics: $rest"
}

# expect_grew NAME...: each statistic has counted something.
expect_grew() {
    local name
    for name; do
        expect "${stat[$name]:--1}" '>' 0 "statistic $name"
    done
}

# Each fork and wake-up is placed exactly once; some may be under way as the
# statistics are read.
expect_placed_once() {
    local name placed=0 came
    for name in "${!stat[@]}"; do
        [[ $name != place_* ]] || placed=$((placed + stat[$name]))
    done
    came=$((stat[fork] + stat[wake]))
    expect "$came" '>' 100 'forks and wake-ups'
    expect $((placed - came)) '<=' 8 'placed more often than forked or woken'
    expect $((came - placed)) '<=' 8 'forked or woken, but not placed'
}

# ---- cgroups ----

# find_cgroups DIR: ${cgroups} is the unified hierarchy, mounted below DIR, and ${mounted}
# not empty, if the machine has none.
find_cgroups() {
    cgroups=/sys/fs/cgroup mounted=''
    if [[ ! -e $cgroups/cgroup.procs ]]; then
        cgroups=$1/cgroup mounted=1
        mkdir "$cgroups" && mount -t cgroup2 none "$cgroups"
    fi
}

# ---- terminals ----

# have_terminals: pseudo terminals are there, which a simulated machine begins without.
have_terminals() {
    [[ ! -e /dev/pts/ptmx ]] || return 0
    mkdir -p /dev/pts
    mount -t devpts devpts /dev/pts
}

# ---- the end ----

clean_up() {
    local status=$?
    trap - EXIT
    [[ -z $scheduler_pid$scx_pid ]] || kill -KILL ${scheduler_pid:-"$scx_pid"} 2>/dev/null || true
    ((${#background[@]} == 0)) || kill -KILL "${background[@]}" 2>/dev/null || true
    ((${#litter[@]} == 0)) || rm -rf "${litter[@]}"
    if ((status == 0 && expectations == 0)); then
        echo 'the test expected nothing' >&2
        status=1
    fi
    ((status == 0)) || [[ -z $log ]] || printf 'the scheduler said:\n%s' "$log" >&2
    exit "$status"
}
trap clean_up EXIT
