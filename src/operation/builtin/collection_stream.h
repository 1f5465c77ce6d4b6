/* collection_stream: the form of `collection` that sends everything in one answer. */
#ifndef STAMPD_OPERATION_BUILTIN_COLLECTION_STREAM_H
#define STAMPD_OPERATION_BUILTIN_COLLECTION_STREAM_H

#include "operation/attempt.h"
#include "operation/builtin/collection_request.h"

/* Afterwork: sends the whole collection when a stream was requested. */
enum fault collection_stream(struct attempt *attempt);
/* The same where rules decide: page after page, judged on the newest documents. */
enum fault collection_stream_judged(struct attempt *attempt, struct collection_request *request);

#endif
