/* definition: an entry of a subscription: Class, Class/id, or Class/collection@value, with several values for
 * a collection of several properties.  In ids and values a percent sign with two digits stands for any byte;
 * a value of more than VALUE_MEMBER_MOST bytes may be written as #, its size, : and its SHA-256
 * (subscriptions.md).
 *
 * Live events have three more: record:key, a record of the host (records.md), records:prefix, all whose
 * keys begin with it, and records:from/to, all whose keys are not before `from` and not behind `to`, one of
 * which may be empty.  No class has a colon in its name.  Pure. */
#ifndef STAMPD_MODEL_SCHEMA_DEFINITION_H
#define STAMPD_MODEL_SCHEMA_DEFINITION_H

#include "base/arena.h"
#include "base/builder.h"

enum { SESSION_LEAST = 16, SESSION_MOST = 64 };
enum { DEFINITION_VALUES_MOST = 4, DEFINITION_ID_MOST = 255, DEFINITION_KEY_MOST = 1024 };

enum definition_kind {
    DEFINITION_OF_DOCUMENTS,
    DEFINITION_OF_RECORD,
    DEFINITION_OF_PREFIX,
    DEFINITION_OF_RANGE
};

struct definition {
    struct bytes text; /* as written */
    enum definition_kind kind;
    struct bytes class;      /* NO_BYTES: of records */
    struct bytes id;         /* of a document; NO_BYTES: not for a document */
    struct bytes collection; /* its name; NO_BYTES: not for a collection */
    struct bytes value;      /* as in the table of members: a single one as it is, several joined; of records:
                                the key, the prefix, or the first key of the range, which may be empty */
    struct bytes to;         /* of a range: its last key; NO_BYTES: it has no last one */
    int value_count;
};

/* Parses a definition of documents, of any length: the callers check limit_definition_bytes.  False: not
 * valid.  Decoded texts are in the arena, all others are slices of `text`. */
MUST_USE bool definition_read(struct arena *arena, struct bytes text, struct definition *definition_r);

/* The same for a definition of records: is it one, valid or not?  Parses it. */
bool definition_is_of_records(struct bytes text);
MUST_USE bool definition_read_records(struct arena *arena, struct bytes text,
                                      struct definition *definition_r);

/* Appends its key, equal for definitions that mean the same and different for all others: a letter, the
 * class, '/', the collection, '@', the id or value.  The SQL function stampd.subscription_match() builds the
 * same key. */
void definition_add_key(const struct definition *definition, struct builder *key);

/* Is this a valid name of a session, the owner of definitions? */
bool definition_is_session(struct bytes name);

#endif
