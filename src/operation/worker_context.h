/* worker_context: what a process that runs operations lends them, for its whole life. */
#ifndef STAMPD_OPERATION_WORKER_CONTEXT_H
#define STAMPD_OPERATION_WORKER_CONTEXT_H

#include "base/settings.h"
#include "document/documents.h"
#include "segment/segment.h"

struct builder;
struct collection_kept;
struct collection_unchanged;
struct configurations;
struct instance;
struct verified_tokens;
struct blob_store;
struct object_stores;

struct worker_context {
    const struct settings *settings;
    struct segment *segment;
    struct documents *documents;
    struct configurations *configurations;     /* configurations.h */
    struct verified_tokens *verified_tokens;   /* verified_tokens.h */
    struct collection_unchanged *unchanged;    /* collection_unchanged.h; NULL: none */
    struct collection_kept *kept_streams;      /* collection_kept.h; NULL: none */
    struct blob_store *blobs;                  /* blob_store.h; NULL: the process serves no attachments */
    const struct object_stores *object_stores; /* object_stores.h; NULL: none, or they cannot be read */
    bool decodes;                    /* the process may wait for the decoder of images (blob/thumbnailer.h) */
    const struct instance *instance; /* serve/instance.h */
    /* Waits for so long, but not longer than until another request, or a signal, waits for this process:
     * true.  NULL: the process never waits for anything else. */
    bool (*is_wanted)(const struct worker_context *context, int wait_ms);
    /* Writes the metrics of the instance, in the format of Prometheus; NULL: the process has none. */
    void (*write_metrics)(const struct worker_context *context, struct builder *out);
    /* Writes the samples of the last hour behind this number as JSON, and one of this moment; NULL: the
     * process has none. */
    void (*write_activity)(const struct worker_context *context, uint64_t after, struct builder *out);
};

#endif
