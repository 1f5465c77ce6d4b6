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

/* The question whether the body may come: nginx names address, credentials, sizes and, of an upload that is
 * created, its metadata, and nothing else. */
void request_upload_ask(struct call *call, const struct request_upload_headers *headers,
                        struct resource *resource, struct attachment_request *attachment_r);
/* What nginx is answered about a body that may not come: the code of the fault, and, of a file for which
 * there is no room, the limit and its value, XBUSY.LIMIT=VALUE, or the quota, its value and the sum,
 * ALIMIT.QUOTA=VALUE=SUM; without the sum if the caller may not learn it. */
const char *request_upload_judged(const struct call *call, const struct reply *reply, enum fault fault);

#endif
