# SPDX-License-Identifier: GPL-2.0-only
# What runs a virtual machine: QEMU, virtiofsd, busybox and kmod from Debian,
# virtme-ng from PyPI. The host's own are used where they are good enough.
# shellcheck shell=bash disable=SC2034,SC2154 # variables shared with the scripts

virtme_version=1.42
perfetto_version=0.59.1
protobuf_version=7.36.2

# Debian 12's QEMU 7.2 crashes guests under TCG when the kernel patches static
# keys, which is what enabling a scheduler does.
qemu_min=8.2

# at_least_version LEAST VERSION
at_least_version() { printf '%s\n' "$1" "$2" | sort -CV; }

# qemu_version PROGRAM: as 10.0.13; fails if it is no QEMU.
qemu_version() { "$1" --version 2>/dev/null | sed -n 's/^QEMU emulator version \([0-9.]*\).*/\1/p' | grep .; }

qemu_new_enough() {
    local version
    have qemu-system-x86_64 && version=$(qemu_version qemu-system-x86_64) && at_least_version "$qemu_min" "$version"
}

# Sets virtiofsd. QEMU's old daemon of the same name, in C, refuses --version
# without a socket and cannot share a whole root.
find_virtiofsd() {
    for virtiofsd in "$(command -v virtiofsd || true)" /usr/libexec/virtiofsd /usr/lib/virtiofsd; do
        [[ -x $virtiofsd && ! -d $virtiofsd ]] && "$virtiofsd" --version 2>/dev/null | grep -q '^virtiofsd' && return 0
    done
    return 1
}

static_busybox() {
    have busybox && ! LC_ALL=C ldd "$(command -v busybox)" >/dev/null 2>&1
}

host_tools() {
    qemu_new_enough && find_virtiofsd && static_busybox && have depmod && have modprobe &&
        { have file || have strings; }
}

# tool_wrapper DIR NAME PROGRAM [OPTION...]: DIR/bin/NAME runs a program of the
# unpacked tree DIR with that tree's own libc and libraries, so that it does
# not matter which release of which distribution the host runs.
tool_wrapper() {
    local dir=$1 name=$2 program=$3
    shift 3
    cat >"$dir/bin/$name" <<END
#!/bin/sh
root=\${0%/bin/*}/root
lib=\$root/usr/lib/x86_64-linux-gnu
QEMU_MODULE_DIR=\$lib/qemu exec "\$lib/ld-linux-x86-64.so.2" --argv0 $name --library-path "\$lib" \\
    "\$root/$program" $* "\$@"
END
    chmod 755 "$dir/bin/$name"
}

# qemu_wrapper DIR: its firmware lies in the tree, too.
qemu_wrapper() {
    # shellcheck disable=SC2016 # expanded when the wrapper runs
    tool_wrapper "$1" qemu-system-x86_64 usr/bin/qemu-system-x86_64 \
        '-L "$root/usr/share/seabios" -L "$root/usr/share/qemu" -L "$root/usr/lib/ipxe/qemu"'
}

# make_qemu SUITE DIR: the QEMU of another suite than the tools' one.
make_qemu() {
    local suite=$1 dir=$2 closure
    mapfile -t closure < <(debian_closure -t "$suite" qemu-system-x86)
    if ((${#closure[@]} == 0)); then
        say "Debian's lists have no installable qemu-system-x86 of $suite"
        return 1
    fi
    mkdir "$dir/root" "$dir/bin"
    debian_unpack "$dir/root" "${closure[@]}" || return 1
    rm -rf "$dir"/root/usr/share/{doc,man,locale}
    qemu_wrapper "$dir"
}

make_tools() {
    local dir=$1 closure
    mapfile -t closure < <(debian_closure qemu-system-x86 virtiofsd kmod)
    if ((${#closure[@]} == 0)); then
        say "Debian's lists have no installable qemu-system-x86, virtiofsd and kmod"
        return 1
    fi
    mkdir "$dir/root" "$dir/bin"
    # base-files' /lib -> /usr/lib is not wanted: everything lives below usr.
    debian_unpack "$dir/root" "${closure[@]}" busybox-static || return 1
    rm -rf "$dir"/root/usr/share/{doc,man,locale}
    qemu_wrapper "$dir"
    tool_wrapper "$dir" virtiofsd usr/libexec/virtiofsd
    tool_wrapper "$dir" depmod usr/bin/kmod
    tool_wrapper "$dir" modprobe usr/bin/kmod
    cp "$dir/root/usr/bin/busybox" "$dir/bin/busybox"
    # virtme-ng asks `file` or `strings` for a kernel's version.
    ln -s busybox "$dir/bin/strings"
    local tool
    for tool in qemu-system-x86_64 virtiofsd; do
        if ! "$dir/bin/$tool" --version >/dev/null; then
            say "Debian's $tool does not run on this machine"
            return 1
        fi
    done
}

# modules DIR PACKAGE==VERSION...: Python modules from PyPI in DIR/modules, not a virtual
# environment: those cannot be moved. The environment is only there for its pip, which
# Debian has no other way.
modules() {
    local dir=$1
    shift
    python3 -c 'import ensurepip, venv' 2>/dev/null ||
        die "python3 with its venv module is missing: run scripts/setup vm"
    if ! python3 -m venv "$dir/venv" >&2 ||
        ! "$dir/venv/bin/pip" --quiet --disable-pip-version-check install \
            --target "$dir/modules" "$@" >&2; then
        die "cannot install $* from PyPI into $cache"
    fi
    rm -rf "$dir/venv"
}

make_virtme() { modules "$1" "virtme-ng==$virtme_version"; }

# Perfetto's definitions of its format, to check what is written for it.
make_perfetto() { modules "$1" --no-deps "perfetto==$perfetto_version" "protobuf==$protobuf_version"; }

perfetto_modules=$cache/perfetto-$perfetto_version/modules

prepare_perfetto() {
    [[ ! -d $perfetto_modules ]] || return 0
    say "fetching Perfetto's definitions $perfetto_version"
    cached "$cache/perfetto-$perfetto_version" make_perfetto
}

virtme_run() {
    PYTHONPATH=$cache/virtme-ng-$virtme_version/modules exec setsid \
        python3 "$root/scripts/lib/virtme_run.py" "$root/scripts/lib/guest" "$@"
}

# Put QEMU, virtiofsd, busybox and depmod on PATH and have virtme-ng.
prepare_tools() {
    local no_tools="no usable QEMU: install qemu-system-x86 (>= $qemu_min), virtiofsd, busybox-static, kmod and file"
    if [[ ! -d $cache/tools ]]; then
        if host_tools; then
            PATH=${virtiofsd%/*}:$PATH
        else
            debian_lists || die "$no_tools"
            say "fetching QEMU and virtiofsd (40 MB)"
            cached "$cache/tools" make_tools || die "$no_tools"
        fi
    fi
    PATH=$cache/tools/bin:$PATH
    if [[ ! -d $cache/virtme-ng-$virtme_version ]]; then
        say "fetching virtme-ng $virtme_version"
        cached "$cache/virtme-ng-$virtme_version" make_virtme
    fi
}
