/* attach: items P of a request, which name a file that the store has already (doc/reference/attachments.md).
 *
 *   {"c":"P","k","sha","mime"}            a file that the caller has uploaded, or may read anyway
 *   {"c":"P","k","file","mime"}           a file of the multipart form that the request is
 *   {"c":"P","k","from":{"c","id","k"}}   the file of an attachment that the caller may read; also with sha,
 * mime
 *   {"c":"P","k","j":{…}}                 as it was read: this attachment stays as it is */
#ifndef STAMPD_OPERATION_ATTACHMENTS_ATTACH_H
#define STAMPD_OPERATION_ATTACHMENTS_ATTACH_H

#include "operation/attempt.h"
#include "operation/reader.h"

struct attach {
    struct bytes key;
    struct bytes mime;         /* NO_BYTES: that of the source, or application/octet-stream */
    struct blob_digest digest; /* if has_digest */
    bool has_digest, has_source, has_file, is_sent_back;
    size_t file;                 /* if has_file: its place in the call */
    struct document_name source; /* if has_source: the document and */
    struct bytes source_key;     /* the key of the attachment */
};

/* Is the element an item of class P? */
bool attach_is(const struct json *item);
/* Has it a member that names a file? */
bool attach_names(const struct json *item);
/* All that can be judged without its document; for an item that is not a removal. */
MUST_USE enum fault attach_read(const struct reader *reader, const struct json *item, struct bytes key,
                                struct attach *attach_r);
/* Sets the item.  FAULT_NATTACHMENT: there is no such file, or the caller may not attach it. */
MUST_USE enum fault attach_set(struct attempt *attempt, const struct reader *reader, struct draft *draft,
                               const struct json *item, const struct attach *attach);

#endif
