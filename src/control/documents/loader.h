/* loader: sends lines as documents to a server, in batches, several in flight, until all are stored.
 *
 * Batches may end in any order, so progress counts up to the first line that is not done.  Two lines of the
 * same document are never in flight together: the later line in the file wins.  A batch that the server
 * refuses is sent again document by document, to identify the line; a batch that fails temporarily is sent
 * again later. */
#ifndef STAMPD_CONTROL_DOCUMENTS_LOADER_H
#define STAMPD_CONTROL_DOCUMENTS_LOADER_H

#include "control/documents/bookmark.h"
#include "control/control.h"
#include "control/documents/input.h"
#include "edge/http.h"

enum { LOADER_BATCH_MAX = 256 };

struct loader_options {
    const char *url;            /* of the operation put */
    struct bytes key;           /* administrator's; NO_BYTES: none */
    int64_t batch, batch_bytes; /* most documents in a request, and most bytes unless it has only one */
    int64_t retry_s;            /* how long to retry a server that is temporarily unable */
    bool keep_going;            /* skip lines that are wrong or refused */
    struct http_options http;
    const char *bookmark_path; /* NULL: none is kept */
    struct bookmark bookmark;  /* where to begin; names of namespace and file */
};

struct loader_report {
    int64_t lines, documents; /* done, stored: by this run */
    int64_t wrong;            /* lines that are not documents or were refused */
    int64_t line;             /* all lines up to this one are done */
    bool is_failed;           /* did not reach the end; why has been reported */
    bool is_interrupted;
};

void loader_run(const struct loader_options *options, struct input *input, struct loader_report *report_r);

#endif
