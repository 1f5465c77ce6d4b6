/* attachment_upload: receives the file of an attachment, before the tries of its operation.
 *
 * The request is judged first, by a try that ends before its commit: rules, conditions, limits and quotas
 * refuse it before a byte is read.  Then the bytes pass from the request into the store in pieces, so that
 * memory stays flat whatever their number; only a share of the workers receive files at the same time.  A
 * file that the commit does not name is removed by the cleaner. */
#ifndef STAMPD_OPERATION_ATTACHMENTS_ATTACHMENT_UPLOAD_H
#define STAMPD_OPERATION_ATTACHMENTS_ATTACHMENT_UPLOAD_H

#include "blob/blob_store.h"
#include "operation/attempt.h"

/* `kept` of the attempt. */
struct attachment_upload {
    bool is_stored; /* false: it is judged; digest and size are what the request promises */
    struct blob_digest digest;
    int64_t size;
};

/* FAULT_ADIGEST: the bytes have another digest than the headers promise; FAULT_XBUSY: the share of the
 * workers; FAULT_ABODY, XFULL, XSTORE; and what the judgement refuses. */
MUST_USE enum fault attachment_upload_receive(struct attempt *attempt);

/* For a request whose body has not come yet: FAULT_ALIMIT if a quota of bytes leaves no room for the file.
 * What else is wrong is said when the body is there. */
MUST_USE enum fault attachment_upload_may_put(struct worker_context *worker_context, struct call *call,
                                              struct reply *reply);

/* --- its steps, for uploads in parts (upload.h) and files of a form (put_files.h) --- */

/* A try of the operation that ends before its commit: what that would refuse. */
MUST_USE enum fault attachment_upload_try(struct attempt *attempt);

/* Would the commit of the operation be accepted?  `upload`, which begins `kept`, has the size. */
MUST_USE enum fault attachment_upload_judge(struct attempt *attempt, struct attachment_upload *upload);
/* The same for a body that has not come: only a quota of bytes refuses. */
MUST_USE enum fault attachment_upload_may(struct attempt *attempt);
/* The keys under which the file is stored, read now, so that a new one is used at once; none: in clear. */
MUST_USE enum fault attachment_upload_keys(struct attempt *attempt, struct sealed_file_keys *keys_r);
/* Only files of more bytes count in the shares of the workers. */
bool attachment_upload_is_large(int64_t size);
MUST_USE enum fault attachment_upload_enter(struct attempt *attempt);
void attachment_upload_leave(struct attempt *attempt);
/* Makes the bytes durable, and sets their digest and size.  The caller ends the upload. */
MUST_USE enum fault attachment_upload_seal(struct attempt *attempt, struct blob_upload *blob,
                                           struct attachment_upload *upload);
/* Gives the sealed file its digest, and ends the upload. */
MUST_USE enum fault attachment_upload_publish(struct attempt *attempt, struct blob_upload *blob,
                                              const struct attachment_upload *upload);
/* Stores bytes that are in memory, whole; sets their digest and size. */
MUST_USE enum fault attachment_upload_bytes(struct attempt *attempt, struct bytes content,
                                            struct attachment_upload *upload_r);
/* The time of an operation begins when its body is there, as with other bodies, and so does its access: the
 * account, its session or a right may have ended while the body was received.  `fault`: what receiving has
 * refused, which is returned. */
MUST_USE enum fault attachment_upload_begin_commit(struct attempt *attempt, enum fault fault);

#endif
