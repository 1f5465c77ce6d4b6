/* worker_context: what a process that runs operations lends them, for its whole life. */
#ifndef STAMPD_OPERATION_WORKER_CONTEXT_H
#define STAMPD_OPERATION_WORKER_CONTEXT_H

#include "base/settings.h"
#include "document/documents.h"
#include "segment/segment.h"

struct builder;
struct configurations;
struct instance;
struct verified_tokens;
struct blob_store;

struct worker_context {
    const struct settings *settings;
    struct segment *segment;
    struct documents *documents;
    struct configurations *configurations;   /* operation/configurations.h */
    struct verified_tokens *verified_tokens; /* operation/verified_tokens.h */
    struct blob_store *blobs;                /* edge/blob_store.h; NULL: the process serves no attachments */
    const struct instance *instance;         /* serve/instance.h */
    /* Writes the metrics of the instance, in the format of Prometheus; NULL: the process has none. */
    void (*write_metrics)(const struct worker_context *context, struct builder *out);
};

#endif
