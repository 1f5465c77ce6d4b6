/* live_question: reads the definitions that a listener subscribes to (live.md) from a query string or a
 * JSON body.
 *
 * A definition is Class, Class/id, or Class/collection@value, with several values for a collection of several
 * properties, or of records, record:key, records:prefix and records:from/to; in ids, values and keys, a
 * percent sign with two hexadecimal digits stands for any byte, as encodeURIComponent writes it.  A search is
 * find:{…}, the parameter of the operation `find` as JSON; collections between the colon and the brace, with
 * blanks between them, are what is followed for it in place of its class. */
#ifndef STAMPD_LIVE_TOPICS_LIVE_QUESTION_H
#define STAMPD_LIVE_TOPICS_LIVE_QUESTION_H

#include "base/fault.h"
#include "model/schema/definition.h"

/* A search.  Whenever one of its definitions has changed, so may what it finds. */
struct live_wish {
    struct bytes text;      /* as written: equal texts are equal searches */
    struct bytes body;      /* of a request that runs it for its rows: {"param":…} */
    size_t position;        /* of the definition in the list, from 0 */
    struct bytes *followed; /* collections, or the class */
    size_t count;
    size_t end; /* in the list of definitions: behind its last one */
};

struct live_question {
    struct definition *definitions; /* of documents: as written, in their order, without duplicates; behind
                                     * `count_own` those of the searches, in the order of these */
    size_t count, count_own;
    struct live_wish *wishes;
    size_t wish_count;
    struct bytes *stamps; /* of pages of searches that the client has */
    size_t stamp_count;
    int64_t too_many_rows;      /* after FAULT_ALIMIT: of a search; 0: it is not that */
    struct definition *records; /* likewise, of records */
    size_t record_count;
    size_t too_long;
    size_t wrong;   /* after FAULT_AARG: number of the wrong definition, from 1; 0: none */
    const char *at; /* after a fault: JSON pointer to the argument, in the arena; NULL: no single one */
    struct bytes unknown, nearest; /* after FAULT_AARG: the unknown name, and the nearest known one */
    const char *detail;            /* of that, in the arena; NULL: no name is unknown */
    struct bytes last;             /* id of the last event; NO_BYTES: absent */
    struct bytes session;          /* NO_BYTES: absent */
    struct bytes admin;            /* NO_BYTES: absent; only from a body */
};

struct live_source {
    struct bytes query, content_type, body; /* as sent; an empty body counts as absent */
    size_t definitions_most, definition_bytes_most;
    size_t records_most; /* of the definitions */
    size_t searches_most;
    int64_t search_rows_most; /* of one of them */
};

/* FAULT_AARG, AUTF8, AJSON, ATYPE: `wrong_r` names the argument.  FAULT_ALIMIT: a definition is too long,
 * then question_r->too_long is its size; or there are too many, then count, record_count and wish_count are
 * their numbers. Texts are in the arena or slices of the source. */
MUST_USE enum fault live_question_read(struct arena *arena, const struct live_source *source,
                                       struct live_question *question_r, const char **wrong_r);

#endif
