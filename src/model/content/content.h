/* content: JSON Schemas of items' contents: compiled once, checked at each write (validation.md).
 *
 * The dialect is 2020-12 with local references.  Every keyword is enforced or, for annotations, has no
 * effect; a keyword that is neither is refused at compilation.  A compiled schema is immutable.
 *
 * The cost of both is bounded, whatever their input.  A schema has limited size, depth and subschemas, and no
 * reference leads back to itself without going into a member or an element.  A check spends steps: about one
 * for each rule applied to a value, and one for each 16 bytes compared; regular expressions count as in
 * edge/pattern.h.  Numbers are compared as decimals (content_value.h).  Pure. */
#ifndef STAMPD_MODEL_CONTENT_CONTENT_H
#define STAMPD_MODEL_CONTENT_CONTENT_H

#include "base/arena.h"
#include "edge/json/json.h"

enum {
    CONTENT_SCHEMA_BYTES_MOST = 65536,
    CONTENT_SCHEMA_DEPTH_MOST = 64, /* nesting of its text */
    CONTENT_SUBSCHEMAS_MOST = 1000,
    CONTENT_DEPTH_MOST = 1000,           /* subschemas that a check is inside at one time */
    CONTENT_VALUES_MOST = 250000,        /* values in a content that is checked */
    CONTENT_PATTERN_STEPS_MOST = 100000, /* of one match, and 16 for each byte of the text */
};

struct content_schema;

/* Why a text is not a schema, or one that cannot be enforced here. */
struct content_problem {
    const char *place;    /* JSON pointer into the schema */
    const char *expected; /* one sentence */
};

/* Compiles the schema; it borrows the tree, which must be complete (no shallow nodes) and live as long.
 * `is_raw`: of raw text, with the keywords of strings alone. */
MUST_USE bool content_compile(struct arena *arena, const struct json *text, bool is_raw,
                              const struct content_schema **schema_r, struct content_problem *problem_r);

enum content_verdict {
    CONTENT_CONFORMS,
    CONTENT_VIOLATES,
    CONTENT_COSTLY, /* more steps than are left would be needed; the violation has the rule reached */
};

/* The first violation, in the order of the content; texts are static or in the arena. */
struct content_violation {
    const char *place;    /* JSON pointer into the content; "" for the whole */
    const char *keyword;  /* the rule: "maxLength" */
    const char *rule;     /* JSON pointer into the schema: "/properties/name/maxLength" */
    const char *expected; /* one short sentence */
};

/* Checks a content: a JSON text, or raw text under a schema of raw text.  Subtracts the cost from `steps`. */
MUST_USE enum content_verdict content_check(const struct content_schema *schema, struct arena *arena,
                                            struct bytes content, int64_t *steps,
                                            struct content_violation *violation_r);

#endif
