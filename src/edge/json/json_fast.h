/* json_fast: the fast path for escape-free JSON, private to edge/json/json.c.
 *
 * yajl spends about forty instructions per byte, which is most of the cost of synchronising many documents.
 * The fast path reads texts as programs write them (no escapes, few members per object) in one pass; every
 * other text, valid or not, goes to the full parser, yajl, which alone decides and explains.  test_json and
 * fuzz_json check that both return the same tree. */
#ifndef STAMPD_EDGE_JSON_JSON_FAST_H
#define STAMPD_EDGE_JSON_JSON_FAST_H

#include "edge/json/json.h"

enum {
    JSON_FAST_MEMBERS = 8, /* an object with more goes to the full parser */
    JSON_FAST_DEPTH = 64,  /* so does a text nested deeper, as the fast path is recursive */
};

/* The tree of a text known to be UTF-8; NULL: the full parser must read it. */
struct json *json_fast_read(struct arena *arena, struct bytes text, const struct json_limits *limits);

/* json_read that avoids it: by the full parser alone, for the tests that compare the two. */
MUST_USE enum fault json_fast_avoid(struct arena *arena, struct bytes text, const struct json_limits *limits,
                                    struct json **root_r, struct json_problem *problem_r);

#endif
