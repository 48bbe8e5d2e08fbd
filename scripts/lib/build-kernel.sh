# SPDX-License-Identifier: GPL-2.0-only
# Kernels that Debian packages without sched_ext, built once from its source with it:
# scripts/vm --build.
# shellcheck shell=bash disable=SC2154 # variables shared with the scripts

# The tools of this host but for pahole, which writes what BPF programs are checked
# against (BTF) and has to be new enough for that.
make_pahole() {
    local dir=$1 closure
    mapfile -t closure < <(debian_closure pahole)
    if ((${#closure[@]} == 0)); then
        say "Debian's lists have no installable pahole"
        return 1
    fi
    mkdir "$dir/root" "$dir/bin"
    debian_unpack "$dir/root" "${closure[@]}" || return 1
    tool_wrapper "$dir" pahole usr/bin/pahole
    "$dir/bin/pahole" --version >/dev/null
}

# make_built_kernel SERIES DIR: DIR/boot/{vmlinuz,config}-VERSION; the rest of the
# 10 GB that a build takes is not kept.
make_built_kernel() {
    local series=$1 dir=$2 version make
    linux_source "linux-source-$series" "$dir" || return 1
    mkdir "$dir/build" "$dir/boot"
    make=(make -s -C "$dir/linux" O="$dir/build" ARCH=x86_64 "PAHOLE=$cache/pahole/bin/pahole" -j"$(nproc)")
    say "building Linux $series (10 minutes on two CPUs)"
    if ! {
        "${make[@]}" KCONFIG_ALLCONFIG="$root/scripts/lib/kernel-small.config" allnoconfig &&
            nice -n 19 "${make[@]}" bzImage
    } >"$dir/log" 2>&1; then
        tail -n 20 "$dir/log" >&2
        return 1
    fi
    if ! grep -qx CONFIG_SCHED_CLASS_EXT=y "$dir/build/.config"; then
        say "Linux $series cannot be built with sched_ext"
        return 1
    fi
    version=$(<"$dir/build/include/config/kernel.release")
    cp "$dir/build/arch/x86/boot/bzImage" "$dir/boot/vmlinuz-$version"
    cp "$dir/build/.config" "$dir/boot/config-$version"
    rm -rf "${dir:?}"/{linux,build,log}
}

build_kernel() {
    local series=$1 command
    for command in make gcc bc flex bison xz; do
        have "$command" || die "$command is missing: run scripts/setup bench"
    done
    [[ ! -d $(built_kernel "$series") ]] || return 0
    debian_lists || die "no source of Linux $series"
    cached "$cache/pahole" make_pahole || die "no usable pahole"
    cached "$(built_kernel "$series")" make_built_kernel "$series" || die "Linux $series cannot be built: see above"
}
