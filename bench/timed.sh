# SPDX-License-Identifier: GPL-2.0-only
# For workloads whose metric is how long shell commands take. Sourced after lib.sh.
# shellcheck shell=bash

# timed COMMAND...: runs it, and sets `elapsed` to its time in ms. Returns its status.
timed() {
    local start=$EPOCHREALTIME status=0 end us
    "$@" || status=$?
    end=$EPOCHREALTIME
    # The locale decides between a point and a comma; the microseconds are six digits.
    us=$((${end/[.,]/} - ${start/[.,]/}))
    # shellcheck disable=SC2034 # used by the workloads
    printf -v elapsed '%d.%03d' $((us / 1000)) $((us % 1000))
    return "$status"
}
