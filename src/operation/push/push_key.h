/* push_key: the keys that identify the server to push services (VAPID).  The secret key is the first line of
 * the file of setting push_key_file: 32 bytes in base64, a form that other programs use too. */
#ifndef STAMPD_OPERATION_PUSH_PUSH_KEY_H
#define STAMPD_OPERATION_PUSH_PUSH_KEY_H

#include "base/builder.h"
#include "base/fault.h"
#include "base/settings.h"
#include "edge/crypto/curve.h"

/* Reads the keys of a file; on failure one line in `problem`, which contains nothing of the file's text. */
MUST_USE bool push_key_read(const char *path, struct curve_key *key_r, char *problem, size_t problem_size);
/* The keys of the server, which the caller erases.  FAULT_OPUSH: it has none, or its file is unusable, which
 * has been logged. */
MUST_USE enum fault push_key_fetch(const struct settings *settings, struct curve_key *key_r);
/* Appends the line of such a file, and the applicationServerKey for browsers. */
void push_key_add_secret(struct builder *builder, const struct curve_key *key);
void push_key_add_public(struct builder *builder, const struct curve_key *key);

#endif
