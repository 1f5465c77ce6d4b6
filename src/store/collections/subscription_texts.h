/* subscription_texts: the texts of subscriptions as the database of an encrypted namespace stores them: what
 * it compares is hashed, all else is sealed for its session, the same text as the same.  In other namespaces
 * they stay as they are. */
#ifndef STAMPD_STORE_COLLECTIONS_SUBSCRIPTION_TEXTS_H
#define STAMPD_STORE_COLLECTIONS_SUBSCRIPTION_TEXTS_H

#include "store/data_keys.h"

/* What a text of a session is. */
#define SUBSCRIPTION_DEFINITION "definition"
#define SUBSCRIPTION_ENDPOINT   "push endpoint"
#define SUBSCRIPTION_P256DH     "push p256dh"
#define SUBSCRIPTION_AUTH       "push auth"
#define SUBSCRIPTION_CONTEXT    "context"
#define SUBSCRIPTION_CREDENTIAL "credential"

/* The key of a definition (definition_add_key): of a collection with the hash of its value, of so many
 * values. */
struct bytes subscription_texts_key(const struct data_keys *keys, struct arena *arena, struct bytes key,
                                    size_t value_count);
struct bytes subscription_texts_seal(const struct data_keys *keys, struct arena *arena, struct bytes session,
                                     const char *what, struct bytes text);
/* False: it was altered, or is another session's; it was logged, and the text is NO_BYTES. */
MUST_USE bool subscription_texts_open(const struct data_keys *keys, struct arena *arena, struct bytes session,
                                      const char *what, struct bytes *text);

#endif
