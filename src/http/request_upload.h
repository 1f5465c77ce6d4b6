/* request_upload: what a request of the tus protocol names: /{ns}/upload, which creates an upload in parts,
 * and /{ns}/upload/{id}; its version, lengths, offset and metadata. */
#ifndef STAMPD_HTTP_REQUEST_UPLOAD_H
#define STAMPD_HTTP_REQUEST_UPLOAD_H

#include "operation/reply.h"
#include "http/request_attachment.h"
#include "http/response.h"

/* Is what follows the code of the namespace such a path?  Sets the route and the path: the name, or nothing.
 */
bool request_upload_find(const struct bytes *pieces, size_t count, struct call *call);
/* False: the method is not allowed at this path. */
bool request_upload_find_act(struct bytes method, const struct call *call, enum resource_act *act_r);

/* What the headers of the request have; empty: absent. */
struct request_upload_headers {
    struct bytes version, length, offset, metadata;
    struct request_attachment_headers body;
};
/* FAULT_AARG, ATYPE, ABODY: a header is wrong, with status 412 for another version of the protocol; recorded
 * in the reply. */
MUST_USE enum fault request_upload_read(struct call *call, const struct request_upload_headers *headers,
                                        struct resource *resource, struct attachment_request *attachment_r,
                                        struct reply *reply);

#endif
