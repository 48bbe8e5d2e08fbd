# SPDX-License-Identifier: GPL-2.0-only
# Shared by prepare and run: PostgreSQL's programs, and a server of our own in a
# folder in memory, which is reached by a socket there and in no other way.
# shellcheck shell=bash disable=SC2154 # variables of ../lib.sh

# The newest that is here: the system's, or one that prepare has unpacked.
find_postgres() {
    local candidate
    for candidate in "$kept"/programs/usr/lib/postgresql/*/bin /usr/lib/postgresql/*/bin; do
        [[ ! -x $candidate/postgres || ! -x $candidate/initdb || ! -x $candidate/pgbench ]] || programs=$candidate
    done
    [[ ${programs-} ]] || return 1
    [[ $programs == "$kept"/* ]] || return 0
    LD_LIBRARY_PATH=$(printf '%s:' "$kept"/programs/usr/lib/*-linux-gnu)
    export LD_LIBRARY_PATH
}

# A server refuses to run as root, and nobody else may look into root's cache.
as_user() {
    local -a reach=()
    ((EUID)) && exec "$@"
    [[ $programs != "$kept"/* ]] || reach=(--inh-caps=+dac_override --ambient-caps=+dac_override)
    exec setpriv --reuid=nobody --regid=nogroup --clear-groups "${reach[@]}" -- "$@"
}

# Runs a program of PostgreSQL; its last words are the reason of a failure.
call() {
    (cd "$scratch" && as_user "$programs/$1" "${@:2}" >"$scratch/log" 2>&1) ||
        die "$1 failed: $(tail -n 1 "$scratch/log")"
}

# Starts a server in $scratch/data, whose pid is $server. It is a process of this
# group and ends with it, and when this script ends.
start_server() {
    local line=''
    exec {server_out}< <(cd "$scratch" && as_user "$programs/postgres" -D "$scratch/data" -c listen_addresses= \
        -c unix_socket_directories="$scratch" -c fsync=off -c max_connections=500 2>&1)
    server=$!
    trap 'stop_server QUIT; rm -rf "$scratch"' EXIT
    while read -r -u "$server_out" line; do
        [[ $line != *"ready to accept connections"* ]] || return 0
    done
    die "PostgreSQL's server does not start: $line"
}

# stop_server [SIGNAL]: if it still runs. Its output ends when its last process has.
# After the usual INT, what is in $scratch/data is whole.
stop_server() {
    kill -s "${1:-INT}" "$server" 2>/dev/null || return 0
    while read -r -u "$server_out"; do :; done
}
