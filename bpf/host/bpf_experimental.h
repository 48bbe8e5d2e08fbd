/* SPDX-License-Identifier: GPL-2.0-only */
/* Stands in for the header of this name; scx/common.bpf.h here has all that there is. */
