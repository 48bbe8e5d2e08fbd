# SPDX-License-Identifier: GPL-2.0-only
# Shared by the scripts in scripts/: messages, the cache folder, locks, and
# building a folder so that it is either complete or not there.
# shellcheck shell=bash disable=SC2034 # variables shared with the scripts

# Debian keeps depmod, modprobe and debootstrap here, and the PATH of an
# ordinary user or of a container often leaves it out.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

prog=${0##*/}
fail_status=1
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/scx_freqlock

say() { printf '%s: %s\n' "$prog" "$*" >&2; }

die() {
    say "$*"
    exit "$fail_status"
}

have() { command -v "$1" >/dev/null 2>&1; }

# with_lock NAME COMMAND...: one process at a time; the others wait for it.
with_lock() {
    local name=$1 fd status=0
    shift
    mkdir -p "$cache/locks" || die "cannot write $cache: set XDG_CACHE_HOME to a folder that can be written"
    exec {fd}>"$cache/locks/$name"
    if ! flock -n "$fd"; then
        say "waiting for another $name that is being prepared"
        flock "$fd"
    fi
    "$@" || status=$?
    exec {fd}>&-
    return "$status"
}

# cached DIR COMMAND...: run COMMAND with an empty folder as its last argument
# and rename that folder to DIR when it succeeded. Nothing to do if DIR exists.
cached() {
    local dir=$1
    shift
    [[ -d $dir ]] || with_lock "$(basename "$dir")" cached_locked "$dir" "$@"
}

cached_locked() {
    local dir=$1 new
    shift
    [[ -d $dir ]] && return 0
    mkdir -p "$(dirname "$dir")"
    rm -rf "$dir".new.*
    new=$(mktemp -d "$dir.new.XXXXXX")
    chmod 755 "$new"
    if ! "$@" "$new"; then
        rm -rf "$new"
        return 1
    fi
    mv -T "$new" "$dir"
}

# fresh FILE MINUTES: FILE exists and is younger than that.
fresh() { [[ -e $1 && -n $(find "$1" -mmin "-$2" 2>/dev/null) ]]; }
