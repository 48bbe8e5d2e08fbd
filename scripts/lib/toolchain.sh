# SPDX-License-Identifier: GPL-2.0-only
# The guest's compiler, from Debian packages: as the guest has it, and so that
# the host can run it too. What is built for the guest is then the same on every
# host, whichever compiler that has.
# shellcheck shell=bash disable=SC2154 # variables shared with the scripts

toolchain_packages=(gcc make bc libc6-dev)

# What building parts of a kernel runs in the guest, and libraries come along.
compiler_programs=(usr/bin/{gcc,as,ld,ar,nm,objcopy,make,bc})

# toolchain_wrapper DIR NAME PROGRAM: DIR/bin/NAME runs a program of DIR/root
# with its own libraries. Programs that gcc builds are static, for the same reason.
toolchain_wrapper() {
    local dir=$1 name=$2 program=$3 options=''
    # shellcheck disable=SC2016 # expanded when the wrapper runs
    [[ $name != gcc ]] || options='-B "${0%/*}/" --sysroot="$root" -static '
    cat >"$dir/bin/$name" <<END_OF_WRAPPER
#!/bin/sh
root=\${0%/bin/*}/root
lib=\$root/usr/lib/x86_64-linux-gnu
GCC_EXEC_PREFIX=\$root/usr/lib/gcc/ exec "\$lib/ld-linux-x86-64.so.2" --argv0 $name --library-path "\$lib" \\
    "\$root/$program" $options"\$@"
END_OF_WRAPPER
    chmod 755 "$dir/bin/$name"
}

make_toolchain() {
    local dir=$1 closure program
    mapfile -t closure < <(debian_closure "${toolchain_packages[@]}")
    if ((${#closure[@]} == 0)); then
        say "Debian's lists have no installable ${toolchain_packages[*]}"
        return 1
    fi
    mkdir "$dir/root" "$dir/bin"
    debian_unpack "$dir/root" "${closure[@]}" || return 1
    rm -rf "$dir/root/usr/share"
    for program in "${compiler_programs[@]}" $(cd "$dir/root" && find usr/libexec/gcc \( -name cc1 -o -name collect2 \)); do
        toolchain_wrapper "$dir" "${program##*/}" "$program"
    done
}

# Copies a file below ROOT to the same place below DIR, with all that it links to.
copy_with_targets() {
    local root=$1 dir=$2 file=$3
    while
        mkdir -p "$dir/${file%/*}" && cp -a "$root/$file" "$dir/$file" || return 1
        [[ -L $root/$file ]]
    do
        file=$(realpath --no-symlinks --relative-to="$root" "$root/${file%/*}/$(readlink "$root/$file")")
    done
}

# The same for a program or library and what it needs of the libraries in LIB.
# The file is asked, not its loader, which may be another architecture's.
copy_with_libraries() {
    local root=$1 dir=$2 file=$3 lib=$4 needed name
    copy_with_targets "$root" "$dir" "$file" || return 1
    needed=$(LC_ALL=C readelf -d "$root/$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p') || return 1
    for name in $needed; do
        [[ -e $dir/$lib/$name ]] || copy_with_libraries "$root" "$dir" "$lib/$name" "$lib" || return 1
    done
}

# make_compiler TOOLCHAIN DIR: what of it goes into an image.
make_compiler() {
    local root=$1/root dir=$2 program
    # Without a folder of headers, gcc refuses to work.
    copy_with_targets "$root" "$dir" usr/include/stdc-predef.h || return 1
    for program in "${compiler_programs[@]}" $(cd "$root" && find usr/libexec/gcc -name cc1); do
        copy_with_libraries "$root" "$dir" "$program" usr/lib/x86_64-linux-gnu || return 1
    done
}

# The same for arm64: Debian's cross compiler of the same version, by the names
# that the other one has. So a build is the same work in every guest.
make_arm64_compiler() {
    local dir=$1 root=$1/.root closure program
    mapfile -t closure < <(debian_closure gcc-x86-64-linux-gnu make bc)
    if ((${#closure[@]} == 0)); then
        say "Debian's lists have no installable gcc-x86-64-linux-gnu for arm64"
        return 1
    fi
    mkdir "$root"
    debian_unpack "$root" "${closure[@]}" || return 1
    for program in gcc as ld ar nm objcopy; do
        ln -s "x86_64-linux-gnu-$program" "$root/usr/bin/$program"
    done
    # gcc refuses to work without a folder of headers, and looks for the
    # assembler in one of its own.
    mkdir -p "$dir/usr/x86_64-linux-gnu/include"
    for program in "${compiler_programs[@]}" usr/x86_64-linux-gnu/bin/as \
        $(cd "$root" && find usr/libexec/gcc-cross -name cc1); do
        copy_with_libraries "$root" "$dir" "$program" usr/lib/aarch64-linux-gnu || return 1
    done
    rm -rf "$root"
}
