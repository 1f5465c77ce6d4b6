/* site_key: the key of this site, under which the data keys of encrypted namespaces are stored
 * (doc/explanation/encryption.md).  Read once at start, and inherited by all children. */
#ifndef STAMPD_SEAL_SITE_KEY_H
#define STAMPD_SEAL_SITE_KEY_H

#include "base/settings.h"
#include "seal/sealing.h"

enum { SITE_KEY_MARK = 16 };

/* Reads site_key_file or what site_key_command prints, and site_key_former_file; none is no error.  On
 * failure returns false with one line in `problem`. */
MUST_USE bool site_key_load(const struct settings *settings, char *problem, size_t problem_size);
/* With a site key, the files that processes share have contents of encrypted namespaces in clear, and must be
 * in memory: the segment, and the records.  False, with one line in `problem`: one of them is on a disk. */
MUST_USE bool site_key_check_shared(const struct settings *settings, char *problem, size_t problem_size);
/* The first digits of a digest of the present site key, by which a wrong one is recognised; "": none. */
const char *site_key_mark(void);

/* Erases the site keys, and what sealing.h keeps: for a process that needs them at its start only. */
void site_key_forget(void);

/* A data key of the database, sealed under the present site key.  There must be one. */
struct bytes site_key_wrap(struct arena *arena, struct bytes database, int64_t id,
                           const unsigned char secret[SEALING_KEY]);
/* `mark` is that of the site key under which it was sealed.  False: it is neither the present nor the former
 * one, or the text was altered. */
MUST_USE bool site_key_unwrap(struct arena *arena, struct bytes mark, struct bytes database, int64_t id,
                              struct bytes wrapped, unsigned char secret_r[SEALING_KEY]);

/* Other texts, which this server or its successor reads again: sealed under the present site key, for a kind.
 * Without a site key: none may be sealed, and none can be opened. */
struct bytes site_key_seal(struct arena *arena, struct bytes kind, struct bytes text);
MUST_USE bool site_key_open(struct arena *arena, struct bytes kind, struct bytes sealed,
                            struct bytes *text_r);

#endif
