/* arguments: reads the arguments of a request from its query string and body.
 *
 * The arguments of an operation are param, syncs, account, key, admin, lang, dhop and session; a document as
 * a resource has items and age in place of param and syncs.  They come in the query string and in the body: a
 * form (application/x-www-form-urlencoded or multipart/form-data) or one JSON object with members of these
 * names.  Of repeated arguments the first wins, those of the query string before those of the body.  An
 * unknown name is refused, and the nearest known one returned; all files of a multipart form are kept,
 * whatever their names.  Results are in the arena or are slices of the source, which must live as long. */
#ifndef STAMPD_HTTP_ARGUMENTS_H
#define STAMPD_HTTP_ARGUMENTS_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/fault.h"
#include "operation/call.h"

struct argument_source {
    bool is_resource;          /* items and age are read, not param and syncs */
    bool is_manager;           /* a request to a queue manager: param and key */
    struct bytes query;        /* after the '?', as sent */
    struct bytes content_type; /* as sent; ignored when there is no body */
    struct bytes body;
};

/* Most nodes in a tree of arguments: 80 MB, enough for 100,000 syncs. */
enum { ARGUMENT_NODES = 1000000 };

struct argument_limits {
    int depth;    /* deepest nesting of a JSON body (setting limit_depth); one less for param in a form */
    size_t nodes; /* ARGUMENT_NODES */
    size_t parts; /* of a multipart form; pairs of a query string and form (setting limit_parts) */
};

struct arguments {
    const struct json *param;            /* an object; NULL: absent */
    const struct json *syncs;            /* an array; NULL: absent */
    struct client_copies *client_copies; /* replaces `syncs` when the fast path has read the body */
    const struct json *items;            /* an array; NULL: absent */
    struct bytes age;                    /* NO_BYTES: absent */
    const struct call_file *files;       /* in their order */
    size_t file_count;
    struct bytes account, key, admin, lang, dhop, session; /* NO_BYTES: absent */
    const char *wrong;   /* the argument at fault, or "body", "query" or "limit_parts"; NULL: no fault */
    bool is_unknown;     /* `wrong` is not the name of an argument */
    const char *nearest; /* the known name nearest to it; NULL: none */
};

/* Reads all arguments.  FAULT_AARG: a wrong escape, a NUL, a wrong kind of JSON.  FAULT_AUTF8, FAULT_AJSON,
 * FAULT_ALIMIT: as json_read.  FAULT_ATYPE: a body of another type or character set, a part with a transfer
 * encoding.  FAULT_ABODY: a multipart form that was cut off.  On a fault `arguments_r->wrong` and `problem_r`
 * hold the details (a sentence; offset: in the JSON text, 0 elsewhere).
 *
 * Trees are built as deep as the generic operations need: arrays and objects inside an item of a document
 * (docs, document, items, item; of a resource: items, item) stay shallow, so that a content `j` is available
 * as its text. */
MUST_USE enum fault arguments_read(struct arena *arena, const struct argument_source *source,
                                   const struct argument_limits *limits, struct arguments *arguments_r,
                                   struct json_problem *problem_r);

#endif
