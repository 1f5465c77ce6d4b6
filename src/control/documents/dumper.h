/* dumper: copies the documents of a namespace to a descriptor, one line each, ordered by class and id.
 *
 * `list` returns the names, page by page; `get` returns the documents in batches, several in flight, which
 * are written in their order.  A batch is as large as the documents allow.  Each document is consistent at
 * one instant; the dump as a whole is not. */
#ifndef STAMPD_CONTROL_DOCUMENTS_DUMPER_H
#define STAMPD_CONTROL_DOCUMENTS_DUMPER_H

#include "control/control.h"
#include "control/documents/page.h"
#include "edge/http.h"

struct dumper_options {
    const char *list_url, *get_url;
    struct bytes key;       /* administrator's; NO_BYTES: none */
    struct bytes class;     /* NO_BYTES: all */
    struct bytes prefix;    /* of ids; NO_BYTES: any */
    int64_t after;          /* only documents of a later version */
    struct page_name start; /* only names after it; its texts NO_BYTES: from the start */
    int64_t parallel;       /* requests in flight */
    int64_t retry_s;        /* how long to retry a server that is temporarily unable */
    int output;             /* descriptor */
    const char *output_name;
    struct http_options http; /* all but `parallel` */
};

struct dumper_report {
    int64_t documents; /* written by this run */
    const char *last;  /* "Class.id": all up to it are written; NULL: none.  Valid until the arena's reset */
    bool is_failed;    /* did not reach the end; why has been reported */
    bool is_interrupted;
};

void dumper_run(const struct dumper_options *options, struct arena *arena, struct dumper_report *report_r);

#endif
