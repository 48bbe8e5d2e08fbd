/* SPDX-License-Identifier: GPL-2.0-only */
/* The flat file that describes a machine to the plugin. */
#ifndef FREQLOCK_MACHINE_CONFIG_H
#define FREQLOCK_MACHINE_CONFIG_H

#include <stddef.h>
#include "model.h"

/*
 * Read the file at `path`. False: it cannot be used, and `why` holds a sentence
 * that names the file and the line.
 */
bool config_read(const char *path, struct model_config *config, char *why, size_t why_size);

#endif /* FREQLOCK_MACHINE_CONFIG_H */
