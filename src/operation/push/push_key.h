/* push_key: the keys by which push services know who sends (VAPID).  The secret one is the first line of the
 * file that the setting push_key_file names: 32 bytes in base64, as other programs write it too. */
#ifndef STAMPD_OPERATION_PUSH_PUSH_KEY_H
#define STAMPD_OPERATION_PUSH_PUSH_KEY_H

#include "base/fault.h"
#include "base/settings.h"
#include "edge/curve.h"

/* Reads the keys of a file; on failure one line in `problem`, without anything of what was read. */
MUST_USE bool push_key_read(const char *path, struct curve_key *key_r, char *problem, size_t problem_size);
/* Those of the server, which the caller erases.  FAULT_OPUSH: it has none, or its file is not good, which has
 * been logged. */
MUST_USE enum fault push_key_fetch(const struct settings *settings, struct curve_key *key_r);
/* Appends the line of such a file, and what browsers are given as applicationServerKey. */
void push_key_add_secret(struct builder *builder, const struct curve_key *key);
void push_key_add_public(struct builder *builder, const struct curve_key *key);

#endif
