/* collection_stream: the form of `collection` that sends everything in one answer. */
#ifndef STAMPD_OPERATION_COLLECTIONS_COLLECTION_STREAM_H
#define STAMPD_OPERATION_COLLECTIONS_COLLECTION_STREAM_H

#include "operation/attempt.h"
#include "operation/collections/collection_request.h"

/* Afterwork: sends the whole collection when a stream was requested. */
enum fault collection_stream(struct attempt *attempt);

#endif
