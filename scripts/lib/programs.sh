# SPDX-License-Identifier: GPL-2.0-only
# What cargo builds, and the tests' own programs.
# shellcheck shell=bash disable=SC2154,SC2120 # variables and arguments come from the scripts

# build_workspace [OPTION...]: all that cargo builds. For fewer packages those that they
# depend on have other features, and would be built once more.
build_workspace() {
    take_crates || return
    (cd "$root" && cargo build --release --workspace --locked "$@")
}

# Where the crates of others lie that this workspace builds: what cargo makes of them is the same
# in each checkout, and is half of a first build.
kept_crates() {
    local key
    key=$(cd "$root" && {
        cat Cargo.lock Cargo.toml .cargo/config.toml scripts/lib/rustc && rustc -vV
    } | sha256sum | cut -c1-16) || return
    echo "$cache/crates-$key"
}

# A checkout that has built nothing yet begins with those; where they cannot be copied, with nothing.
take_crates() {
    local kept taken=$root/target/release.taken
    [[ ! -d $root/target/release ]] || return 0
    kept=$(kept_crates) || return
    [[ -d $kept ]] || return 0
    say "taking what was built of other crates from $kept"
    rm -rf "$taken" && mkdir -p "$root/target" || return
    if ! { cp -a --reflink=auto "$kept/release" "$taken" && mv -T "$taken" "$root/target/release"; }; then
        say "could not copy them (above): cargo builds them again"
        rm -rf "$taken"
    fi
}

# Once all of the workspace is built and checked; of others than these nobody has a use any more.
keep_crates() {
    local kept
    kept=$(kept_crates) || return
    [[ ! -d $kept ]] || return 0
    rm -rf "$cache"/crates-*
    cached "$kept" copy_crates
}

# copy_crates DIR: all that cargo made but for the workspace's own members.
copy_crates() {
    local made=$1/release names name
    mkdir "$made" && cp -a --reflink=auto "$root"/target/release/{.fingerprint,build,deps} "$made" || return
    names=$(cd "$root" && cargo metadata --locked --offline --no-deps --format-version 1 | python3 -c '
import json, sys
print(*{name for package in json.load(sys.stdin)["packages"]
        for name in [package["name"], *(target["name"] for target in package["targets"])]})') || return
    for name in $names; do
        # With the digest that cargo gives each.
        rm -rf "$made"/{.fingerprint,build}/"$name"-???????????????? \
            "$made"/deps/{,lib}"${name//-/_}"-????????????????{,.*}
    done
    # The libraries of C programs have no digest.
    find "$made/deps" -type f ! -name '*-????????????????*' -delete
}

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
