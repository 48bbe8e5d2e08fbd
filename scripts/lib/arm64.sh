# SPDX-License-Identifier: GPL-2.0-only
# What arm64 guests of simulated machines need on an x86-64 host: Debian's
# packages of that architecture, QEMU, a kernel, and a cross compiler for C and
# Rust, which is clang with Debian's arm64 libraries.
# shellcheck shell=bash disable=SC2034,SC2154 # variables shared with the scripts

arm64_target=aarch64-unknown-linux-gnu
arm64_tools=$cache/tools-arm64
arm64_libraries=(libc6-dev libgcc-14-dev libelf-dev zlib1g-dev libzstd-dev)

# QEMU; and a busybox for this host of the release that the guest has it from,
# because a guest's own does not know what it can do here.
make_arm64_tools() {
    local dir=$1 closure
    mapfile -t closure < <(debian_closure qemu-system-arm)
    ((${#closure[@]})) || {
        say "Debian's lists have no installable qemu-system-arm"
        return 1
    }
    mkdir "$dir/root" "$dir/bin"
    debian_unpack "$dir/root" "${closure[@]}" busybox-static || return 1
    rm -rf "$dir"/root/usr/share/{doc,man,locale}
    # shellcheck disable=SC2016 # expanded when the wrapper runs
    tool_wrapper "$dir" qemu-system-aarch64 usr/bin/qemu-system-aarch64 '-L "$root/usr/share/qemu"'
    "$dir/bin/qemu-system-aarch64" --version >/dev/null || {
        say "Debian's qemu-system-aarch64 does not run on this machine"
        return 1
    }
}

# DIR/bin/cc compiles and links for arm64. Beside the libraries there is
# hackbench of rt-tests, which needs no more than libc.
make_arm64_sysroot() {
    local dir=$1 closure
    mapfile -t closure < <(debian_closure "${arm64_libraries[@]}")
    ((${#closure[@]})) || {
        say "Debian's lists have no installable ${arm64_libraries[*]} for arm64"
        return 1
    }
    debian_unpack "$dir" "${closure[@]}" rt-tests || return 1
    # base-files would make this link.
    [[ -e $dir/lib ]] || ln -s usr/lib "$dir/lib"
    rm -rf "${dir:?}/usr/share"
    mkdir -p "$dir/bin"
    cat >"$dir/bin/cc" <<'END'
#!/bin/sh
exec clang-19 --target=aarch64-linux-gnu --sysroot="${0%/bin/cc}" -fuse-ld=lld-19 \
    -Wno-unused-command-line-argument "$@"
END
    chmod 755 "$dir/bin/cc"
}

# Sets rust_sysroot to a folder with Rust's library for arm64, empty for the
# compiler's own. rustup has it as a target, Debian as a package.
prepare_arm64_rust() {
    rust_sysroot=''
    [[ ! -d $(rustc --print target-libdir --target "$arm64_target") ]] || return 0
    if [[ $(rustc --print sysroot) == "${RUSTUP_HOME:-${HOME:-/root}/.rustup}"/* ]]; then
        say "adding Rust's target $arm64_target"
        rustup --quiet target add "$arm64_target" >&2 || die "rustup cannot add the target $arm64_target"
        return
    fi
    local package version
    package=$(dpkg-query -S "$(readlink -f "$(command -v rustc)")" 2>/dev/null | cut -d: -f1) &&
        version=$(dpkg-query -W -f '${Version}' "$package") ||
        die "$(command -v rustc) is neither rustup's nor Debian's: add its target $arm64_target by hand"
    cached "$cache/rust-arm64-$version" make_arm64_rust "libstd-${package/rustc/rust}-dev=$version" ||
        die "Rust's library for arm64 cannot be fetched"
    rust_sysroot=$cache/rust-arm64-$version/usr
}

# The package has to be of the compiler's version, so it comes from the
# system's own sources, read for the other architecture.
make_arm64_rust() {
    local package=$1 dir=$2 lists
    lists=$(mktemp -d "$dir/.apt.XXXXXX")
    mkdir -p "$lists"/{state/lists/partial,cache/archives/partial}
    : >"$lists/status"
    local -a options=(-q -o "Dir::State=$lists/state" -o "Dir::State::status=$lists/status"
        -o "Dir::Cache=$lists/cache" -o APT::Architecture=arm64 -o APT::Architectures=arm64
        -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=2)
    say "fetching $package for arm64"
    # Sources of others that cannot be read must not stop us.
    (cd "$lists" && { apt-get "${options[@]}" update || true; }) >"$lists/log" 2>&1
    if ! (cd "$lists" && apt-get "${options[@]}" download "$package") >"$lists/log" 2>&1; then
        say "cannot fetch $package: $(grep -m1 '^E:' "$lists/log" || true)"
        return 1
    fi
    dpkg -x "$lists"/*.deb "$dir" && rm -rf "$lists"
}

# Prepares everything, and the packages and the kernel used from now on are
# arm64's. The kernel is of the minor version of the one for x86-64, unless its
# image is given by path.
prepare_arm64() {
    local wanted=$1 version=${kernel_image##*/vmlinuz-} tool
    for tool in clang-19 ld.lld-19 llvm-strip-19 rustc; do
        have "$tool" || die "$tool is missing: run scripts/setup"
    done
    if [[ ! -d $arm64_tools ]]; then
        debian_lists || die "no usable QEMU for arm64"
        say "fetching QEMU for arm64 (40 MB)"
        cached "$arm64_tools" make_arm64_tools || die "no usable QEMU for arm64"
    fi
    debian_arch=arm64 debian_tree=$cache/apt-arm64
    kernel_flavour=arm64 kernels=$cache/kernels-arm64 kernel_modules=mediatek-cpufreq-hw.ko.xz
    [[ $wanted == */* ]] || choose_kernel "$(cut -d. -f1,2 <<<"$version")"
    # By what it is made from.
    sysroot=$cache/sysroot-arm64-$({ declare -p arm64_libraries && declare -f make_arm64_sysroot; } | sha256sum | cut -c1-16)
    if [[ ! -d $sysroot ]]; then
        debian_lists || die "no libraries for arm64"
        say "fetching libraries for arm64 (20 MB)"
        cached "$sysroot" make_arm64_sysroot || die "no libraries for arm64"
    fi
    prepare_arm64_rust
}

# cargo_arm64 ARGUMENT...
cargo_arm64() {
    CC_aarch64_unknown_linux_gnu=$sysroot/bin/cc AR_aarch64_unknown_linux_gnu=llvm-ar-19 \
        BINDGEN_EXTRA_CLANG_ARGS_aarch64_unknown_linux_gnu="--sysroot=$sysroot -idirafter $sysroot/usr/include/aarch64-linux-gnu" \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$sysroot/bin/cc \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS=${rust_sysroot:+--sysroot=$rust_sysroot} \
        cargo "$@" --target "$arm64_target"
}
