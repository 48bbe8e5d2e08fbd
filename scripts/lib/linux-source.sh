# SPDX-License-Identifier: GPL-2.0-only
# Linux's source from a Debian package.
# shellcheck shell=bash

# linux_source PACKAGE DIR [TAR-OPTION...]: unpacked in DIR/linux.
linux_source() {
    local package=$1 dir=$2 archive
    shift 2
    say "fetching $package (150 MB)"
    mkdir "$dir/deb" "$dir/linux"
    debian_unpack "$dir/deb" "$package" || return 1
    say "unpacking $package"
    archive=$(find "$dir/deb" -name "$package.tar.xz")
    tar -x -J -f "$archive" -C "$dir/linux" --strip-components=1 "$@" || return 1
    rm -rf "$dir/deb"
}
