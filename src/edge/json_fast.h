/* json_fast: the fast path for escape-free JSON, private to edge/json.c.
 *
 * yajl spends some forty instructions on each byte, which is most of the price of a synchronisation of many
 * documents.  Texts as programs write them (no escapes, few members in an object) are read here in one pass;
 * whatever is not plain, or wrong in any way, is left to yajl, which alone judges and explains.  That both
 * roads give the same tree is held by test_json and by fuzz_json. */
#ifndef STAMPD_EDGE_JSON_FAST_H
#define STAMPD_EDGE_JSON_FAST_H

#include "edge/json.h"

enum {
    JSON_FAST_MEMBERS = 8, /* an object with more is not plain */
    JSON_FAST_DEPTH = 64,  /* nor is a text nested deeper: it is read by recursion */
};

/* The tree of a text known to be UTF-8; NULL: it is not plain. */
struct json *json_read_plain(struct arena *arena, struct bytes text, const struct json_limits *limits);

/* json_read by yajl alone, for the tests that compare the two roads. */
MUST_USE enum fault json_read_thoroughly(struct arena *arena, struct bytes text,
                                         const struct json_limits *limits, struct json **root_r,
                                         struct json_problem *problem_r);

#endif
