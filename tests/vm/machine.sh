# SPDX-License-Identifier: GPL-2.0-only
# For the tests of the simulated machine: runs on it, with the test's own
# programs in the guest, and comparisons with what closed forms say. Sourced
# after lib.sh. Times are the machine's own, so nothing here depends on how fast
# the host is.
# shellcheck shell=bash disable=SC2034,SC2154 # variables shared with lib.sh and the tests

scratch=$(mktemp -d)
# All that a run leaves for a moment is found there, and nowhere else.
export TMPDIR=$scratch/tmp
mkdir "$TMPDIR"
# Whatever this one's status, which clean_up passes on, the other comes after it.
trap 'if machine_clean_up; then clean_up; else clean_up; fi' EXIT

machine_clean_up() {
    local status=$?
    ((status == 0)) || [[ ! ${errors-} ]] || printf 'the machine said:\n%s\n' "$errors" >&2
    rm -rf "$scratch"
    return "$status"
}

# What scripts/machine has prepared, as far as these tests need it (the smaller
# the image, the sooner it is unpacked), and the loads of the tests.
make_kit() {
    local program
    awk 'BEGIN { RS = ""; ORS = "\n\n" }
        !/\[\[content\]\]/ || /from = "[^"]*\/machine\/guest-/ || /to = "\/(init|boot\/.*|usr\/bin\/mark|freqlock\/.*)"/' \
        "$root/target/machine/x86_64/kit.toml"
    for program in machine/x86_64/bin/scx_freqlock tests/probe tests/load tests/moved tests/hostile; do
        printf '[[content]]\nfrom = "%s"\nto = "/usr/bin/%s"\n\n' "$root/target/$program" "${program##*/}"
    done
}
kit=$scratch/kit.toml
make_kit >"$kit"

# machine NAME OPTION... -- COMMAND...: sets status, output and errors; the
# record is in $scratch/record.
machine() {
    status=0
    "$root/scripts/machine" run "$1" --kit "$kit" --record "$scratch/record" "${@:2}" \
        >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
    output=$(<"$scratch/out") errors=$(<"$scratch/err")
}

# As machine(), for a command that prints lines of name=value pairs, which must
# succeed: ${got[name]} is what it found last.
probe() {
    local pair
    machine "$@"
    expect "$status" '==' 0 "exit status; it said: $errors"
    got=()
    for pair in $output; do
        [[ $pair != *=* ]] || got[${pair%%=*}]=${pair#*=}
    done
    echo "$output"
}

# near VALUE EXPECTED PPM WHAT: so many millionths off at most.
near() {
    local off=$(($1 > $2 ? $1 - $2 : $2 - $1))
    expect "$((off * 1000000))" '<=' "$(($2 * $3))" "$4: $1, expected $2; off by more than $3 millionths"
}

# Figures of the record: of_run NAME, of_cpu CPU NAME.
of_run() { sed -n "s/^{\"kind\":\"totals\".*\"$1\":\([0-9]*\).*/\1/p" "$scratch/record/record.jsonl"; }
of_cpu() { sed -n "s/^{\"kind\":\"cpu\",\"cpu\":$1,.*\"$2\":\([0-9]*\).*/\1/p" "$scratch/record/record.jsonl"; }

# When the command began or ended.
mark_ns() { sed -n "s/^{\"kind\":\"mark\",\"name\":\"$1\".*\"ns\":\([0-9]*\),.*/\1/p" "$scratch/record/record.jsonl"; }

# Nothing of a run is left: no process, no file.
expect_nothing_left() {
    local left
    left=$(pgrep -af "$scratch" || true)
    expect_text "[$left]" '^\[\]$' 'processes left behind'
    left=$(ls -A "$TMPDIR")
    expect_text "[$left]" '^\[\]$' 'files left behind'
}
