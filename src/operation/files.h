/* files: answers GET /{ns}/res/<path> with a file of the namespace, or with that of z when the namespace has
 * none of this path (model/resource_file.h).  Files are public whatever the access of the namespace; its
 * state "gone" alone refuses them, so that a page about maintenance has its images. */
#ifndef STAMPD_OPERATION_FILES_H
#define STAMPD_OPERATION_FILES_H

#include "operation/reply.h"
#include "operation/worker_context.h"

/* FAULT_NNAMESPACE, OGONE, NFILE; recorded in the reply. */
MUST_USE enum fault files_answer(struct worker_context *worker_context, struct call *call,
                                 struct reply *reply);

#endif
