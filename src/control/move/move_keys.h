/* move_keys: the data keys of an encrypted namespace, carried over to another database, where the site key
 * there wraps them: so all that is encrypted, hashed or named by them stays what it is. */
#ifndef STAMPD_CONTROL_MOVE_MOVE_KEYS_H
#define STAMPD_CONTROL_MOVE_MOVE_KEYS_H

#include "control/ns/ns_registry.h"

/* The namespace there has all keys of the one here afterwards.  In place of its own, if it has any, it must
 * be unused.  Nothing happens when neither is encrypted.  On failure reports why. */
MUST_USE bool move_keys_carry(struct control *from, const struct ns_target *source, struct control *to,
                              const struct ns_target *target);
/* The classes of which it encrypts the ids, separated by commas; NULL: it is not encrypted.  On failure
 * reports why. */
MUST_USE bool move_keys_find_classes(struct control *control, struct pg *pg, const char **classes_r);
/* The secret of the archives in the folder of the move, which only the site key here opens; drawn by the
 * first call, and kept in the file `path`.  NO_BYTES: the namespace is not encrypted.  On failure reports
 * why. */
MUST_USE bool move_keys_of_archives(struct control *from, const struct ns_target *source, const char *path,
                                    struct bytes *key_r);

#endif
