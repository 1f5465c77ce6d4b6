/* loader: sends lines as documents to a server, in batches, several in flight, until all are stored.
 *
 * Batches may end in any order, so what is done with is counted up to the first line that is not.  Two lines
 * of the same document are never in flight together: the later one wins, as it stands in the file.  A batch
 * that the server refuses is sent again document by document, to name the line; what it could not do at
 * present is sent again later. */
#ifndef STAMPD_CONTROL_LOADER_H
#define STAMPD_CONTROL_LOADER_H

#include "control/bookmark.h"
#include "control/control.h"
#include "control/input.h"
#include "edge/http.h"

enum { LOADER_BATCH_MAX = 256 };

struct loader_options {
    const char *url;            /* of the operation put */
    struct bytes key;           /* administrator's; NO_BYTES: none */
    int64_t batch, batch_bytes; /* most documents and, but for a single one, most bytes in a request */
    int64_t patience_s;         /* for a server that cannot at present */
    bool keep_going;            /* over lines that are wrong or refused */
    struct http_options http;
    const char *bookmark_path; /* NULL: none is kept */
    struct bookmark bookmark;  /* where to begin; names of namespace and file */
};

struct loader_report {
    int64_t lines, documents; /* done with, stored: by this run */
    int64_t wrong;            /* lines that were no documents or were refused */
    int64_t line;             /* all lines up to this one are done with */
    bool is_failed;           /* the end was not reached; why has been said */
    bool is_interrupted;
};

void loader_run(const struct loader_options *options, struct input *input, struct loader_report *report_r);

#endif
