# SPDX-License-Identifier: GPL-2.0-only
# What cargo builds, and the tests' own programs.
# shellcheck shell=bash disable=SC2154,SC2120 # variables and arguments come from the scripts

# build_workspace [OPTION...]: all that cargo builds. For fewer packages those that they
# depend on have other features, and would be built once more.
build_workspace() { (cd "$root" && cargo build --release --workspace --locked "$@"); }

# build_programs: target/release and target/tests below $root.
build_programs() {
    local source
    build_workspace || return
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
