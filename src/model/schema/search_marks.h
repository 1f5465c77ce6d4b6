/* search_marks: excerpts of texts, with the words that a `match` has found in them.  PostgreSQL makes them,
 * with marks that no text has: they begin with a secret, and are taken out here.  Pure. */
#ifndef STAMPD_MODEL_SCHEMA_SEARCH_MARKS_H
#define STAMPD_MODEL_SCHEMA_SEARCH_MARKS_H

#include "model/schema/search.h"

enum {
    SEARCH_MARKS_MOST = 3,   /* excerpts of a text */
    SEARCH_MARKS_WORDS = 24, /* of an excerpt, at most, */
    SEARCH_MARKS_LEAST = 8,  /* and at least */
    SEARCH_MARKS_SECRET = 32 /* characters, digits and letters */
};

/* The statement that returns a row with the excerpts of each text.  `texts`: a JSON array of strings. */
void search_marks_compose(const struct search_condition *match, struct bytes texts, struct bytes secret,
                          struct builder *sql, struct pg_params *params);
/* Appends the excerpts of a row, a JSON array: each is an array of strings, of which those at odd places are
 * marked, and the last is not.  False: nothing is marked, and nothing is appended. */
bool search_marks_write(struct bytes row, struct bytes secret, struct builder *json);

#endif
