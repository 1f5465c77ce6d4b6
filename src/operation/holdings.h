/* holdings: what a caller says of its copies of documents, the argument `syncs`.
 *
 * Clients send up to a thousand of these with a request, and nearly all write them alike.  So a body that
 * begins with such a list, as programs write it, is read in one pass without a tree; whatever is unusual, or
 * wrong in any way, is left to json_read and to holdings_check, which alone judge and explain.  That both
 * roads say the same is held by test_holdings and by fuzz_holdings. */
#ifndef STAMPD_OPERATION_HOLDINGS_H
#define STAMPD_OPERATION_HOLDINGS_H

#include "model/delta.h"
#include "operation/reader.h"

enum { HOLDINGS_DEPTH = 3 }; /* of the brackets of their body */

struct holdings {
    size_t count;
    struct name *names; /* ids are slices of the body */
    struct held *held;
};

/* The body {"syncs":[{"c","id","v","ct","dt"},…]}: members in this order, no escapes, stamps of 15 digits or
 * 0.  In the arena; NULL: it is written otherwise.  What follows the list, from the name of the next member
 * to the end of the body, is not looked at; NO_BYTES: nothing. */
struct holdings *holdings_read_fast(struct arena *arena, struct bytes body, struct bytes *others_r);
/* Are there no more of them, and no longer ids, than there may be? */
MUST_USE enum fault holdings_check(const struct reader *reader, const struct holdings *holdings);
/* Of the tree: checked like that, and for all else that may be wrong. */
MUST_USE enum fault holdings_read(const struct reader *reader, const struct json *syncs,
                                  struct holdings **holdings_r);

#endif
