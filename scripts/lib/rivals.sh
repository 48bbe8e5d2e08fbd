# SPDX-License-Identifier: GPL-2.0-only
# Schedulers that comparisons name beside ours, at the versions of rivals.table.
# shellcheck shell=bash disable=SC2034,SC2154 # variables shared with the scripts

rivals=$cache/rivals

# Lines "NAME VERSION", or "NAME - WHY" of those that cannot be had.
rivals_table() { grep -v '^#' "$root/scripts/lib/rivals.table"; }

# The folder of one, which is there when it is installed. Another version has another one.
rival_folder() { echo "$rivals/$1-$2"; }

# The programs of those that are installed.
rival_programs() {
    local name version why
    while read -r name version why; do
        [[ ! -x $(rival_folder "$name" "$version")/bin/$name ]] || echo "$(rival_folder "$name" "$version")/bin/$name"
    done < <(rivals_table)
}
