# SPDX-License-Identifier: GPL-2.0-only
# Kernels with sched_ext for the virtual machine: Debian's cloud flavour,
# newest at run time, oldest, or of a wanted version; kernels that were built, and
# kernels given by path.
# shellcheck shell=bash disable=SC2034,SC2154 # variables shared with the scripts

kernel_flavour=cloud-amd64
kernels=$cache/kernels
# Of its modules only these are kept.
kernel_modules="*.ko.xz"

# Versions of the packaged kernels, newest last. Up to 6.18 one package holds
# image and modules; later ones are split into linux-binary, -modules and -base.
packaged_kernels() {
    apt-cache "${apt_options[@]}" pkgnames linux- |
        sed -n "s/^linux-\(image\|binary\)-\([0-9][^-]*-$kernel_flavour\)\$/\2/p" | sort -uV
}

# matching WHICH: of the versions that it reads, those that begin with WHICH, newest
# first. An empty WHICH takes all, and `oldest` in the other order.
matching() {
    local which=$1 version order=-rV
    [[ $which != oldest ]] || which='' order=-V
    while read -r version; do
        [[ -z $which || $version == "$which" || $version == "$which"[.+-]* ]] || continue
        echo "$version"
    done < <(sort "$order")
}

# complete_kernels WHICH: the packaged versions that match and are complete.
complete_kernels() {
    local version
    while read -r version; do
        [[ -z $(kernel_packages "$version") ]] || echo "$version"
    done < <(packaged_kernels | matching "$1")
}

# Whether schedulers can be loaded there; the verdict is kept beside the kernel.
kernel_loads_schedulers() {
    local version=$1 verdict=$kernels/$1/kfuncs bad
    if [[ ! -e $verdict ]]; then
        bad=$(python3 "$root/scripts/lib/kernel_btf.py" "$kernels/$version/boot/vmlinuz-$version") || [[ $? == 1 ]] || return 1
        echo "$bad" >"$verdict.$$" && mv "$verdict.$$" "$verdict"
    fi
    [[ -z $(<"$verdict") ]] && return 0
    say "passing over Linux $version: its packaged build shows $(grep -c . "$verdict") sched_ext kfuncs with wrong prototypes, so that no scheduler can be loaded"
    return 1
}

# fetch_kernel WHICH: the first of complete_kernels that can load schedulers; its
# version goes to `version`. Few are tried.
fetch_kernel() {
    local candidate minor tried=' '
    while read -r candidate; do
        # Builds of one minor version come from the same tools: look at the first.
        minor=$(cut -d. -f1,2 <<<"$candidate")
        [[ $tried == *" $minor "* && $1 != "$minor"* ]] && continue
        tried+="$minor "
        cached "$kernels/$candidate" make_kernel "$candidate" || continue
        kernel_loads_schedulers "$candidate" && version=$candidate && return 0
    done < <(complete_kernels "$1")
    return 1
}

kernel_packages() {
    local -a names
    mapfile -t names < <(apt-cache "${apt_options[@]}" pkgnames "linux-" | grep -Fx \
        -e "linux-image-$1" -e "linux-binary-$1" -e "linux-modules-$1" -e "linux-base-$1")
    local all=" ${names[*]} "
    if [[ $all == *" linux-binary-$1 "* ]]; then
        [[ $all == *" linux-modules-$1 "* ]] && echo "linux-binary-$1" "linux-modules-$1" "linux-base-$1"
    elif [[ $all == *" linux-image-$1 "* ]]; then
        echo "linux-image-$1"
    fi
}

# Lay a kernel out as DIR/boot/{vmlinuz,config}-VERSION, DIR/lib/modules/VERSION.
make_kernel() {
    local version=$1 dir=$2 modules f
    local -a packages
    read -ra packages < <(kernel_packages "$version")
    say "fetching Linux $version (60 to 100 MB)"
    debian_unpack "$dir" "${packages[@]}" || return 1
    modules=$(find "$dir" -path "*/lib/modules/$version" -type d -print -quit)
    if [[ -z $modules ]]; then
        say "the packages of Linux $version hold no modules"
        return 1
    fi
    mkdir -p "$dir/boot" "$dir/lib/modules"
    [[ $modules == "$dir/lib/modules/$version" ]] || mv "$modules" "$dir/lib/modules/$version"
    rm -rf "${dir:?}/usr"
    modules=$dir/lib/modules/$version
    for f in vmlinuz config; do
        [[ -e $dir/boot/$f-$version ]] || mv "$modules/$f" "$dir/boot/$f-$version" || return 1
    done
    if ! grep -qx CONFIG_SCHED_CLASS_EXT=y "$dir/boot/config-$version"; then
        say "Linux $version is built without sched_ext (CONFIG_SCHED_CLASS_EXT)"
        return 1
    fi
    find "$modules" -name '*.ko.xz' ! -name "$kernel_modules" -delete
    # virtme-ng's first stage has no decompressor for modules.
    find "$modules" -name '*.ko.xz' -print0 | xargs -0r -n 64 -P "$(nproc)" busybox unxz || return 1
    depmod -b "$dir" "$version"
}

# cached_kernel WHICH: the first in the cache that matches.
cached_kernel() {
    local dir
    for dir in "$kernels"/[0-9]*/boot; do
        [[ ! -d $dir ]] || basename "${dir%/boot}"
    done | matching "$1" | awk 'NR == 1'
}

# Set kernel_image and kernel_config for a packaged kernel.
use_packaged() {
    local which=$1 version='' choice=$kernels/newest-${1:-any}
    [[ $which != oldest ]] || choice=$kernels/oldest
    if fresh "$choice" 1440 && [[ -d $kernels/$(<"$choice") ]]; then
        version=$(<"$choice")
    elif debian_lists; then
        fetch_kernel "$which" ||
            die "no packaged kernel ${which:+$which }has a working sched_ext; there are: $(complete_kernels '' | cut -d+ -f1 | tr '\n' ' ')"
        echo "$version" >"$choice.$$" && mv "$choice.$$" "$choice"
    fi
    if [[ -z $version ]]; then
        version=$(cached_kernel "$which")
        [[ -n $version ]] || die "no kernel ${which:+$which }to boot: neither Debian's packages nor $kernels have one"
        say "taking Linux $version from the cache"
    fi
    kernel_image=$kernels/$version/boot/vmlinuz-$version
    kernel_config=$kernels/$version/boot/config-$version
}

# A kernel by path: its config lies beside it or in the usual places.
use_file() {
    local image dir version f
    image=$(realpath "$1")
    dir=${image%/*}
    version=${image##*/vmlinuz}
    version=${version#-}
    [[ -n $version ]] || version=${dir##*/}
    kernel_image=$image
    for f in "$dir/config-$version" "$dir/config" "$dir/.config" "${dir%/arch/*}/.config" \
        "/boot/config-$version" "/lib/modules/$version/config"; do
        [[ -r $f ]] && kernel_config=$f && return 0
    done
    die "no config of the kernel $1: put it beside it as config-VERSION or .config"
}

# The folder of a kernel that scripts/vm --build made, by version.
built_kernel() { echo "$kernels-built-$1"; }

use_built() {
    local image
    for image in "$(built_kernel "$1")"/boot/vmlinuz-*; do
        [[ -e $image ]] && use_file "$image" && return 0
    done
    return 1
}

use_host() {
    local version image
    version=$(uname -r)
    [[ -d /sys/kernel/sched_ext ]] || die "the running kernel $version has no sched_ext"
    for image in "/boot/vmlinuz-$version" "/usr/lib/modules/$version/vmlinuz"; do
        [[ -r $image ]] && use_file "$image" && return 0
    done
    die "the running kernel's image is not in /boot: give its path with --kernel"
}

# choose_kernel K: '' or `newest`, `oldest`, `host`, a path, or a version prefix.
choose_kernel() {
    case $1 in
    host) use_host ;;
    */*) [[ -r $1 ]] || die "no kernel at $1"; use_file "$1" ;;
    '' | newest) use_packaged '' ;;
    oldest) use_packaged oldest ;;
    [0-9]*) use_built "$1" || use_packaged "$1" ;;
    *) die "--kernel takes a path to a vmlinuz, a version such as 6.18, newest, oldest, or host" ;;
    esac
}
