#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Say which sched_ext kfuncs of a kernel image have unusable prototypes.

Usage: kernel_btf.py VMLINUZ

From 7.0 on, kfuncs of sched_ext take an implicit argument `aux`, which the
kernel's build is to hide from their public prototypes. Some packaged kernels
were built with tools that hide it in a part of them only; no scheduler that
calls one of the others can be loaded there. Prints the names of those, one a
line; exit status 0 if there are none, 1 if there are, 2 if the image cannot
be read.
"""

import struct
import sys

from kernel_image import decompress, section

FUNC, FUNC_PROTO = 12, 13
# Sizes of what follows the 12 bytes of each kind: fixed, and by vlen.
TAIL = {1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8),
        14: (4, 0), 15: (0, 12), 17: (4, 0), 19: (0, 12)}


def types(image):
    """The BTF of a kernel image. An arm64 one is memory as it is, no ELF file."""
    if image[56:60] == b"ARM\x64":
        return image[image.index(b"\x9f\xeb\x01\0\x18\0\0\0"):]
    return section(decompress(image), b".BTF")


def malformed(btf):
    """Names of the public sched_ext kfuncs that show the argument `aux`."""
    head, type_off, type_len, str_off, _ = struct.unpack_from("<4x5I", btf)
    text = btf[head + str_off:]

    def name(offset):
        return text[offset:text.index(b"\0", offset)].decode()

    functions, shows_aux = [], {}
    at, end, number = head + type_off, head + type_off + type_len, 0
    while at < end:
        number += 1
        name_off, info, target = struct.unpack_from("<III", btf, at)
        kind, vlen = info >> 24 & 0x1f, info & 0xffff
        at += 12
        if kind == FUNC:
            functions.append((name(name_off), target))
        elif kind == FUNC_PROTO:
            parameters = struct.unpack_from(f"<{2 * vlen}I", btf, at)
            shows_aux[number] = any(name(n) == "aux" for n in parameters[::2])
        fixed, each = TAIL.get(kind, (0, 0))
        at += fixed + each * vlen
    return sorted(f for f, proto in functions
                  if f.lstrip("_").startswith("scx_bpf_") and not f.endswith("_impl")
                  and shows_aux.get(proto))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        with open(sys.argv[1], "rb") as image:
            names = malformed(types(image.read()))
    except (OSError, ValueError, struct.error) as error:
        print(f"kernel_btf: {sys.argv[1]}: {error}", file=sys.stderr)
        return 2
    print("\n".join(names), end="\n" if names else "")
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
