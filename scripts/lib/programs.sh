# SPDX-License-Identifier: GPL-2.0-only
# The scheduler and the tests' own programs.
# shellcheck shell=bash disable=SC2154 # variables shared with the scripts

# build_programs: target/release and target/tests below $root.
build_programs() {
    local source
    (cd "$root" && cargo build --release --workspace --locked) || return
    mkdir -p "$root/target/tests"
    for source in "$root"/tests/vm/*.c; do
        # Preloaded into QEMU: its test builds it.
        [[ $source != */pester.c ]] || continue
        # Static: they start faster in an emulated machine. Of libfreqlock comes what they call.
        cc -O2 -static -pthread -Wall -Wextra -Werror -Wl,--gc-sections,--strip-debug "-I$root/bpf" "-I$root/lib" \
            -o "$root/target/tests/$(basename "$source" .c)" "$source" \
            "$root/target/release/libfreqlock.a" || return
    done
    # Policies by users, the examples and those of tests: there is no compiler where tests run.
    for source in "$root"/policies/*.bpf.c "$root"/tests/vm/policies/*.bpf.c; do
        "$root/scripts/lib/clang" -g -O2 -Wall -Wextra -Werror -target bpf -mcpu=v3 "-I$root/bpf" \
            -c "$source" -o "$root/target/tests/$(basename "$source" .bpf.c).o" || return
    done
}
