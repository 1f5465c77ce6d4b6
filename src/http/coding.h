/* coding: bodies of requests that were compressed, as the header Content-Encoding says. */
#ifndef STAMPD_HTTP_CODING_H
#define STAMPD_HTTP_CODING_H

#include "base/builder.h"
#include "base/settings.h"
#include "operation/call.h"
#include "operation/reply.h"

/* Is the body gzipped?  `header`: the value of Content-Encoding; empty: it is not.  FAULT_ATYPE, recorded in
 * the reply: it is encoded otherwise, or the body of an attachment, which is stored as it comes. */
MUST_USE enum fault coding_read(struct call *call, struct bytes header, bool *is_gzip_r, struct reply *reply);

/* Replaces a gzipped body by its text, at most `most` bytes.  FAULT_ALIMIT with size_r above `most`: it is
 * longer, and the caller has to name its limit.  Otherwise recorded in the reply: FAULT_ALIMIT of
 * limit_body_ratio, FAULT_ABODY: the body is not gzip, or not all of it. */
MUST_USE enum fault coding_unpack(const struct settings *settings, struct call *call, struct builder *body,
                                  int64_t most, int64_t *size_r, struct reply *reply);

#endif
