/* trace: the W3C's Trace Context of a request (tasks.md, "Trace context") as one text: the header
 * traceparent, version 00, and, behind a blank, the header tracestate if there is one. */
#ifndef STAMPD_MODEL_TRACE_H
#define STAMPD_MODEL_TRACE_H

#include "base/arena.h"
#include "base/bytes.h"

enum {
    TRACE_PARENT_BYTES = 55,
    TRACE_STATE_MOST = 512, /* bytes of tracestate; a longer one is dropped */
};

/* From both headers.  A parent that is not of this form is dropped, and then the state is too; a state is
 * dropped when it is longer than TRACE_STATE_MOST or malformed.  NO_BYTES: there is none. */
struct bytes trace_read(struct arena *arena, struct bytes parent, struct bytes state);
/* Is it a header traceparent of that form? */
bool trace_is_parent(struct bytes text);
/* Its parts; NO_BYTES: none. */
struct bytes trace_parent(struct bytes trace);
struct bytes trace_state(struct bytes trace);

#endif
