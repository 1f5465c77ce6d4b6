/* purger: deletes documents through a server, in the order of class and id, page by page.
 *
 * `list` returns names and versions; the selected ones are deleted by `put` in small batches, each under the
 * condition that it still has the version that was listed.  A document that has changed meanwhile stays, and
 * so does one that was deleted and created again.  One request is in flight at a time; each batch has an
 * Idempotency-Key, so that one whose answer was lost is not taken for changed by others. */
#ifndef STAMPD_CONTROL_DOCUMENTS_PURGER_H
#define STAMPD_CONTROL_DOCUMENTS_PURGER_H

#include "control/control.h"
#include "edge/http.h"

struct purger_options {
    const char *ping_url, *list_url, *put_url;
    struct bytes key;    /* administrator's; NO_BYTES: none */
    struct bytes class;  /* NO_BYTES: all */
    struct bytes prefix; /* of ids; NO_BYTES: any */
    int64_t days;        /* only documents that have not changed for so long, by the server's clock; 0: all */
    int64_t retry_s;     /* how long to retry a server that is temporarily unable */
    bool is_dry;         /* only counts */
    struct http_options http;
};

struct purger_report {
    int64_t listed, selected; /* documents */
    int64_t deleted;          /* by this run */
    int64_t kept;             /* selected, but changed or deleted before their turn */
    bool is_failed;           /* did not reach the end; why has been reported */
    bool is_interrupted; /* by a first signal, after the request in flight; a second one does not wait for it
                          */
};

/* Prints a line for each class that has selected documents. */
void purger_run(const struct purger_options *options, struct purger_report *report_r);

#endif
