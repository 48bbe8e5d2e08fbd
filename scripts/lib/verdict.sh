# SPDX-License-Identifier: GPL-2.0-only
# What a comparison's last lines say, for scripts/demo. Sourced.
# shellcheck shell=bash

# named_in HEADING FILE: the schedulers in the list below Losses or Wins.
named_in() {
    awk -v "heading=$1:" '
        /^[^ ]/ { inside = $1 == heading }
        inside && /^  / { sub(":", "", $1); print $1 }
    ' "$2" | sort -u
}

# best_of FILE SCHEDULER...: the first of them that won something and lost nothing;
# nothing, with status 1, if there is none.
best_of() {
    local file=$1 scheduler
    shift
    for scheduler; do
        named_in Wins "$file" | grep -qxF "$scheduler" || continue
        ! named_in Losses "$file" | grep -qxF "$scheduler" || continue
        echo "$scheduler"
        return
    done
    return 1
}
