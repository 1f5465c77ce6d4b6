/* client_copies: the client's copies of documents, the argument `syncs`.
 *
 * A request carries up to a thousand of these, nearly always in the same form.  A body that begins with such
 * a list, as programs write it, is read in one pass without a tree (fast path).  Every other form, and every
 * error, is left to json_read and client_copies_check (full parser), which alone validate and report.
 * test_client_copies and fuzz_client_copies check that both paths agree. */
#ifndef STAMPD_OPERATION_SYNC_CLIENT_COPIES_H
#define STAMPD_OPERATION_SYNC_CLIENT_COPIES_H

#include "model/document/delta.h"
#include "operation/reader.h"

enum { CLIENT_COPIES_DEPTH = 3 }; /* nesting of the brackets in their body */

struct client_copies {
    size_t count;
    struct document_name *names; /* ids are slices of the body */
    struct client_copy *held;
    struct bytes *views; /* the views that the copies are of (view.h); NULL: all of whole documents */
};

/* The view of a copy; "": the whole document. */
static inline struct bytes client_copies_view(const struct client_copies *client_copies, size_t place)
{
    return client_copies->views ? client_copies->views[place] : BYTES("");
}

/* Reads the body {"syncs":[{"c","id","v","ct","dt"},…]}: members in this order, no others, no escapes, stamps
 * of 15 digits or 0.  In the arena; NULL: it has another form.  The rest after the list, from the name of the
 * next member to the end of the body, is not checked; NO_BYTES: nothing follows. */
struct client_copies *client_copies_read_fast(struct arena *arena, struct bytes body, struct bytes *others_r);
/* Are their number and the lengths of their ids within the limits? */
MUST_USE enum fault client_copies_check(const struct reader *reader,
                                        const struct client_copies *client_copies);
/* The full parser, on the tree: the same checks, and all others. */
MUST_USE enum fault client_copies_read(const struct reader *reader, const struct json *syncs,
                                       struct client_copies **client_copies_r);

#endif
