#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Unpack an x86 kernel image, so that a simulated machine need not.

Usage: kernel_image.py VMLINUZ VMLINUX

Writes the ELF file that is inside VMLINUZ to VMLINUX, if QEMU can boot that:
it must have the entry of a PVH guest (CONFIG_PVH; Xen note XEN_ELFNOTE_PHYS32_ENTRY).
Exit status 0 if it is written, 2 with the reason if it is not.
"""

import re
import struct
import subprocess
import sys

PHYS32_ENTRY = 18


def decompress(image):
    """The ELF file inside an x86 vmlinuz, by the magic of each compression."""
    if image[:4] == b"\x7fELF":
        return image
    for magic, tool in ((b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\x00", "xz"),
                        (b"\x1f\x8b\x08", "gzip")):
        for found in re.finditer(re.escape(magic), image):
            # What follows the compressed part makes the tool complain at the end.
            data = subprocess.run([tool, "-dcq"], input=image[found.start():], check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
            if data[:4] == b"\x7fELF":
                return data
    raise ValueError("neither an ELF file nor one compressed by zstd, xz or gzip")


def section(elf, wanted):
    """Bytes of a section of a 64-bit little-endian ELF file."""
    offset, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    heads = [struct.unpack_from("<IIQQQQ", elf, offset + i * size) for i in range(count)]
    base = heads[names][4]
    for name, _, _, _, start, length in heads:
        end = elf.index(b"\0", base + name)
        if elf[base + name:end] == wanted:
            return elf[start:start + length]
    raise ValueError(f"no section {wanted.decode()}")


def has_pvh_entry(elf):
    """Whether its notes have the address at which a PVH guest begins."""
    notes, at = section(elf, b".notes"), 0
    while at + 12 <= len(notes):
        owner, length, kind = struct.unpack_from("<III", notes, at)
        at += 12
        if kind == PHYS32_ENTRY and notes[at:at + owner] == b"Xen\0":
            return True
        at += (owner + 3 & ~3) + (length + 3 & ~3)
    return False


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        with open(sys.argv[1], "rb") as image:
            elf = decompress(image.read())
        if not has_pvh_entry(elf):
            raise ValueError("it has no entry of a PVH guest")
        with open(sys.argv[2], "wb") as out:
            out.write(elf)
    except (OSError, ValueError, struct.error) as error:
        print(f"kernel_image: {sys.argv[1]}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
