/* dumper: copies the documents of a namespace to a descriptor, a line each, in the order of class and id.
 *
 * `list` tells the names, page after page; `get` brings the documents in batches, several in flight, which
 * are written in their order: a batch is as large as the documents allow.  Each document is of one instant,
 * the whole is not. */
#ifndef STAMPD_CONTROL_DUMPER_H
#define STAMPD_CONTROL_DUMPER_H

#include "control/control.h"
#include "control/page.h"
#include "edge/http.h"

struct dumper_options {
    const char *list_url, *get_url;
    struct bytes key;       /* administrator's; NO_BYTES: none */
    struct bytes class;     /* NO_BYTES: all */
    struct bytes prefix;    /* of ids; NO_BYTES: any */
    int64_t after;          /* only what is of a later version */
    struct page_name start; /* only what comes behind it; its texts NO_BYTES: from the start */
    int64_t parallel;       /* requests in flight */
    int64_t patience_s;     /* for a server that cannot at present */
    int output;             /* descriptor */
    const char *output_name;
    struct http_options http; /* but for `parallel` */
};

struct dumper_report {
    int64_t documents; /* written by this run */
    const char *last;  /* "Class.id": all up to it are written; NULL: none.  Until the arena's reset */
    bool is_failed;    /* the end was not reached; why has been said */
    bool is_interrupted;
};

void dumper_run(const struct dumper_options *options, struct arena *arena, struct dumper_report *report_r);

#endif
