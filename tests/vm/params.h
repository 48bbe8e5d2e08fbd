/* SPDX-License-Identifier: GPL-2.0-only */
/* The arguments of the tests' programs, NAME=VALUE, and how they give up. */
#ifndef FREQLOCK_TEST_PARAMS_H
#define FREQLOCK_TEST_PARAMS_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends with NULL, as argv does. */
static char **params;

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	exit(2);
}

static const char *param(const char *name, const char *preset)
{
	size_t len = strlen(name);

	for (char **p = params; *p; p++)
		if (!strncmp(*p, name, len) && (*p)[len] == '=')
			return *p + len + 1;
	return preset;
}

#endif /* FREQLOCK_TEST_PARAMS_H */
