/* live_question: what a listener wants to hear of (doc/live.md), out of a query string or a JSON body.
 *
 * A definition is Class, Class/id, or Class/collection@value, with several values for a collection of several
 * properties; in id and values a percent sign with two digits stands for any byte: encodeURIComponent writes
 * them. */
#ifndef STAMPD_LIVE_LIVE_QUESTION_H
#define STAMPD_LIVE_LIVE_QUESTION_H

#include "base/fault.h"
#include "model/definition.h"

struct live_question {
    struct definition *definitions; /* as written, in their order, none twice */
    size_t count;
    size_t wrong;   /* after FAULT_AARG: the number of the definition that is wrong, from 1; 0: none is */
    const char *at; /* after a fault: JSON pointer to what is wrong, in the arena; NULL: to no one argument */
    struct bytes unknown, nearest; /* after FAULT_AARG: the name that is none, and the nearest that is one */
    const char *detail;            /* of that, in the arena; NULL: nothing is unknown */
    struct bytes last;             /* id of the last event; NO_BYTES: absent */
    struct bytes session;          /* NO_BYTES: absent */
    struct bytes admin;            /* NO_BYTES: absent; only from a body */
};

struct live_source {
    struct bytes query, content_type, body; /* as sent; a body of no bytes is none */
    size_t definitions_most;
};

/* FAULT_AARG, AUTF8, AJSON, ATYPE: `wrong_r` names the argument.  FAULT_ALIMIT: more definitions than may be;
 * `count_r` of them.  Texts are in the arena or slices of the source. */
MUST_USE enum fault live_question_read(struct arena *arena, const struct live_source *source,
                                       struct live_question *question_r, const char **wrong_r);

/* Names of what can change, each another text: a class, a document, a collection with its value. */
struct bytes live_key_of_class(struct builder *key, struct bytes class);
struct bytes live_key_of_document(struct builder *key, struct bytes class, struct bytes id);
struct bytes live_key_of_member(struct builder *key, struct bytes class, struct bytes collection,
                                struct bytes value);
struct bytes live_key_of_definition(struct builder *key, const struct definition *definition);

#endif
