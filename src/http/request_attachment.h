/* request_attachment: what a request for an attachment names: /{ns}/doc/{Class}/{id}/file/{key}, or
 * …/file/sha/{digest}; its type, length and digest. */
#ifndef STAMPD_HTTP_REQUEST_ATTACHMENT_H
#define STAMPD_HTTP_REQUEST_ATTACHMENT_H

#include "operation/reply.h"

/* Is what follows the code of the namespace such a path?  Sets the route and the path, class and id. */
bool request_attachment_find(const struct bytes *pieces, size_t count, struct call *call);

/* What the headers of the request have; empty: absent. */
struct request_attachment_headers {
    struct bytes content_type, content_length, content_digest, repr_digest;
    bool is_asked; /* whether the body may come; nginx names the length alone */
};
/* FAULT_AARG, ATYPE, ABODY: a header is wrong; recorded in the reply. */
MUST_USE enum fault request_attachment_read(struct call *call,
                                            const struct request_attachment_headers *headers,
                                            struct attachment_request *attachment_r, struct reply *reply);
/* Reads the digest that the headers promise, NO_BYTES if they name none.  FAULT_AARG, recorded in the reply.
 */
MUST_USE enum fault request_attachment_read_promise(struct call *call, struct bytes content_digest,
                                                    struct bytes repr_digest,
                                                    struct attachment_request *attachment,
                                                    struct reply *reply);

#endif
