/* definition: what a client wants to hear of: Class, Class/id, or Class/collection@value, with several values
 * for a collection of several properties; in id and values a percent sign with two digits stands for any byte
 * (doc/subscriptions.md).  Pure. */
#ifndef STAMPD_MODEL_DEFINITION_H
#define STAMPD_MODEL_DEFINITION_H

#include "base/arena.h"
#include "base/bytes.h"

enum { SESSION_LEAST = 16, SESSION_MOST = 64 };
enum { DEFINITION_VALUES_MOST = 4, DEFINITION_TEXT_MOST = 2048, DEFINITION_ID_MOST = 255 };

struct definition {
    struct bytes text; /* as it was written */
    struct bytes class;
    struct bytes id;         /* of a document; NO_BYTES: it is of no document */
    struct bytes collection; /* its name; NO_BYTES: it is of no collection */
    struct bytes value;      /* as the table of members has it: one as it is, several joined */
    int value_count;
};

/* False: it is none.  What was decoded is in the arena, all else are slices of `text`. */
MUST_USE bool definition_read(struct arena *arena, struct bytes text, struct definition *definition_r);

/* Appends its key, the same for all texts that mean the same, another one for all others: a letter, the
 * class, '/', the collection, '@', the id or value.  stampd.subs_touch() of the database makes the same. */
void definition_add_key(const struct definition *definition, struct builder *key);

/* May a session, whose definitions they are, have this name? */
bool definition_is_session(struct bytes name);

#endif
