# SPDX-License-Identifier: GPL-2.0-only
# Starts and stops a scheduler, and looks at what the kernel says of it: for the tests, the
# soak, scripts/measure and the guest of simulated machines. Sourced, by bash or busybox's
# sh; new processes are dear under emulation, so there are few.
# shellcheck shell=sh

scx=/sys/kernel/sched_ext
scx_pid=''

# Between two looks: the kernel has no event for the end of a transition.
if [ "${BASH_VERSION-}" ]; then
    eval 'scx_pause() { read -rt 0.02 <> <(:) || true; }'
else
    scx_pause() { usleep 20000; }
fi

# Sets scx_state (absent where the kernel has no sched_ext), scx_ops, the name of what is
# loaded (-: nothing), and scx_nr, the number of schedulers that were.
scx_look() {
    { read -r scx_state <$scx/state; } 2>/dev/null || scx_state=absent
    { read -r scx_ops <$scx/root/ops; } 2>/dev/null || scx_ops=-
    { read -r scx_nr <$scx/enable_seq; } 2>/dev/null || scx_nr=0
}

# scx_is STATE [OPS]: that is the state, and the name begins so.
scx_is() {
    scx_look
    case "$scx_state $scx_ops" in "$1 ${2-}"*) ;; *) return 1 ;; esac
}

# scx_await SECONDS STATE [OPS [PID]]: false if that does not come, or the process is gone.
scx_await() {
    scx_looks=$(($1 * 50))
    until scx_is "$2" "${3-}"; do
        [ $scx_looks -gt 0 ] || return 1
        [ ! "${4-}" ] || kill -0 "$4" 2>/dev/null || return 1
        scx_looks=$((scx_looks - 1))
        scx_pause
    done
}

# scx_start SECONDS OPS LOG COMMAND...: returns when the kernel schedules with the one whose
# name begins with OPS. Sets scx_pid. False if it does not; then call scx_stop all the same.
scx_start() {
    scx_patience=$1 scx_name=$2 scx_log=$3
    shift 3
    "$@" >>"$scx_log" 2>&1 </dev/null &
    scx_pid=$!
    scx_await "$scx_patience" enabled "$scx_name" "$scx_pid"
}

# scx_reap PID: sets scx_status to its exit status.
scx_reap() {
    scx_status=0
    wait "$1" || scx_status=$?
}

# scx_stop SECONDS [SIGNAL]: ends the one that was started; scx_status is its exit status.
# False if the kernel keeps it.
scx_stop() {
    kill -s "${2:-TERM}" "$scx_pid" 2>/dev/null || true
    scx_reap "$scx_pid"
    scx_pid=''
    scx_await "$1" disabled
}
