/* call: a request; with its reply (reply.h) the only interface between processes and operations, so that
 * operations run unchanged in unit tests.  No FastCGI and no HTTP here. */
#ifndef STAMPD_OPERATION_CALL_H
#define STAMPD_OPERATION_CALL_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/fault.h"
#include "model/namespace.h"
#include "model/quotas.h"
#include "model/rules/rules.h"
#include "model/task/task.h"
#include "edge/json/json.h"

enum call_route {
    CALL_PING,
    CALL_NAMESPACE_PING,
    CALL_OPERATION,
    CALL_DOCUMENT,
    CALL_ATTACHMENT, /* of a document: struct attachment_request */
    CALL_UPLOAD,     /* of a file in parts: struct upload_request */
    CALL_FILE,       /* a file of the namespace: files.h */
    CALL_TASKS,      /* from a queue manager: task_endpoint.h */
    CALL_MAY,        /* would a request of this address and key, with so large a body, be accepted? */
    CALL_OPTIONS,    /* what is allowed at an address that is one of the others */
    CALL_LIVE,
    CALL_READY,
    CALL_METRICS
};

/* A file of a multipart form; all fields are as the client sent them. */
struct call_file {
    struct bytes name, file_name; /* UTF-8 without NUL; the file's name is not a trusted path */
    struct bytes type;            /* content type, visible ASCII and blanks */
    struct bytes content;
};

/* A condition on the version of a document, and on what the caller sees of it. */
struct version_condition {
    bool is_given;
    bool is_any; /* any version: the document must exist */
    const int64_t *versions;
    const struct bytes *views; /* each version's view (view.h); "": the whole document */
    size_t count;
    const struct bytes *digests; /* of attachments, 64 digits each */
    size_t digest_count;
};

/* The last are of attachments and of uploads in parts. */
enum resource_act {
    RESOURCE_READ,
    RESOURCE_REPLACE,
    RESOURCE_CHANGE,
    RESOURCE_REMOVE,
    RESOURCE_READ_FILE,
    RESOURCE_STORE_FILE,
    RESOURCE_REMOVE_FILE,
    RESOURCE_CREATE_UPLOAD,
    RESOURCE_SHOW_UPLOAD,
    RESOURCE_APPEND_UPLOAD,
    RESOURCE_DROP_UPLOAD
};

/* The upper limit of a tolerance, a century. */
#define AGE_MOST INT64_C(3155760000)

/* A document requested as a resource. */
struct resource {
    enum resource_act act;
    struct bytes class, id;
    int64_t age_s;                              /* of RESOURCE_READ: the tolerance */
    struct version_condition match, none_match; /* its version must, must not be one of these */
};

/* The body of a request, read in pieces by the operation. */
struct inlet {
    /* The next piece, valid until the next call; an empty one is the end.  FAULT_ABODY: it was cut off. */
    enum fault (*read)(struct inlet *inlet, struct bytes *piece_r);
};

/* An upload in parts, by the tus protocol. */
struct upload_request {
    struct bytes id;       /* NO_BYTES: it is created */
    struct bytes metadata; /* of one that is created: Upload-Metadata */
    int64_t length;        /* of one that is created: Upload-Length */
    int64_t offset;        /* of a part: Upload-Offset */
    bool has_bytes;        /* the body is a part */
};

/* An attachment requested as a resource; its document is `resource` of the call. */
struct attachment_request {
    struct bytes key, sha;        /* one of them: its key, or the digest, 64 digits; the other is NO_BYTES */
    struct bytes mime;            /* of RESOURCE_STORE_FILE: the content type; empty: none */
    struct bytes range, if_range; /* of a request that reads it; NO_BYTES: none */
    bool is_head;                 /* its head alone is wanted */
    struct bytes promised;        /* its digest by the headers, 64 digits; NO_BYTES: they name none */
    int64_t size;                 /* announced length of the body */
    bool is_asked;                /* its size alone is known: may the body come? */
    struct inlet *inlet;          /* the body */
    const struct upload_request *upload; /* CALL_UPLOAD: the document and the key are known later, except of
                                            one that is created; NULL: another route */
};

/* A file of the namespace, `path` of the call. */
struct file_request {
    struct bytes none_match;        /* If-None-Match: of the proxy's copy, or the client's */
    struct bytes client_none_match; /* of the client behind a proxy that has no copy */
    int64_t build;                  /* that the address names, ?b=; 0: none */
    bool is_canonical; /* the path is written as everybody writes it, so that a proxy may keep the answer */
};

/* A document's items are at param.docs[].items[]: the nesting level of an item, where the outermost brackets
 * are 1.  Deeper nesting is content, kept as text.  Also the most nodes of a tree. */
enum { CALL_PARAM_TREE = 5, CALL_PARAM_NODES = 1000000 };

/* What a caller may do in a namespace; each level includes those before it (operation/access/access.h). */
enum access_level {
    LEVEL_NOTHING,   /* the namespace z, without the administrator's key */
    LEVEL_PUBLIC,    /* public operations, which read documents by themselves */
    LEVEL_READ,      /* every path that returns data of the namespace */
    LEVEL_WRITE,     /* the server's own operations may change documents */
    LEVEL_EVERYTHING /* the administrator */
};

enum call_method { CALL_POST, CALL_GET, CALL_HEAD };

/* Headers that pages cannot forge; empty: absent.  Other clients send none of them. */
struct browser {
    struct bytes origin; /* Origin */
    struct bytes site;   /* Sec-Fetch-Site */
    struct bytes host;   /* Host, with Origin only */
};

struct filters; /* filters.h */

struct call {
    struct arena *arena; /* of the request */
    enum call_route route;
    uint64_t client;        /* the client: address_client of STAMPD_CLIENT; 0: no limit per client applies */
    struct bytes ns;        /* code of the namespace, from nginx */
    struct bytes database;  /* its database, from nginx's map; empty: nginx does not know the namespace */
    bool is_placed;         /* its cell was compared with the configuration: access_place */
    struct bytes operation; /* name, from the path */
    const struct bytes *path; /* what follows the operation's name in the path, decoded */
    size_t path_count;
    struct bytes task_id;            /* CALL_TASKS: the one to run; NO_BYTES: it is in `param` */
    const struct task *task;         /* the task that the operation runs as; NULL: it is a request */
    const struct resource *resource; /* CALL_DOCUMENT: `path` is its class and id, `param` its items */
    const struct attachment_request *attachment; /* CALL_ATTACHMENT, CALL_UPLOAD; NULL: another route */
    const struct file_request *file;             /* CALL_FILE */
    const struct json *param, *syncs;            /* NULL: absent */
    const char *param_at; /* the pointer to `param`; NULL: /param, or /items of a resource */
    const struct client_copies *client_copies;             /* `syncs`, parsed without a tree; NULL: nothing */
    struct bytes account, key, admin, lang, dhop, session; /* NO_BYTES: absent */
    const struct call_file *files;
    size_t file_count;
    struct bytes build;           /* X-Stampd-Build; NO_BYTES: absent */
    struct bytes idempotency_key; /* Idempotency-Key; NO_BYTES: absent */
    struct bytes bearer;          /* the key of the header Authorization; NO_BYTES: absent, or a token */
    struct bytes token;           /* the token of an account in the header Authorization; NO_BYTES: absent */
    struct bytes cookies;         /* the header Cookie; empty: absent */
    enum call_method method;      /* of CALL_OPERATION */
    struct browser browser;       /* headers of a browser about the page that sends the request */
    enum access_level level;      /* set by access_enter; before it: nothing */
    struct bytes administrator;   /* id of the account whose credential is the administrator's; NO_BYTES: the
                                     key   itself, or no administrator; set by access_enter */
    bool is_entered;              /* the level is known */
    int64_t namespace_build;      /* ns_conf.build; set by access_enter */
    const struct rules *rules; /* what the caller may do, beside its level; NULL: the level alone decides; set
                                  by access_enter */
    const struct filters *filters; /* of modules, what they take away; NULL: none; set by access_enter */
    int64_t rules_version;         /* of the item that the rules are; 0: none; set by access_enter */
    struct rules_caller caller;    /* its account; set by access_enter */
    struct bytes caller_session;   /* key of the account's item Sess that the credential is; NO_BYTES: none */
    bool is_by_service_key;        /* the credential is a service key */
    const struct external_proof *external; /* the credential is a token of a provider; NULL: it is none */
    bool is_by_cookie;                     /* the credential was sent by a browser without the page's doing */
    struct ns_accounts accounts;           /* of the namespace; set by access_enter */
    const struct worker_queues *workers;   /* of the namespace; NULL: none; set by access_enter */
    uint32_t key_queues;                   /* bits of those whose key it carries; set by access_enter */
    struct bytes queue_key;      /* that key, which was `bearer`; NO_BYTES: none; set by access_enter */
    const struct quotas *quotas; /* of the namespace; NULL: none, or the administrator; set by access_enter */
    bool is_read_only;           /* the namespace is; set by access_enter */
    const char
        *message; /* of the administrator, about the namespace's state; NULL: none; set by access_enter */
    bool may_get_cookie; /* no page sends it that is not listed by name; set by access_enter */
    bool is_foreign;     /* the page that sends it has none of the namespace's origins; set by access_enter */
    /* How old, in seconds, all that it returns may be; before the body is read: might be.  NULL: 0.  Asked
     * only when nothing newer can be had. */
    int64_t (*find_age)(const struct call *call);
    bool is_by_old;     /* an old configuration has let it in, since none newer could be had */
    size_t body_size;   /* bytes of its body, if it is not an attachment's */
    int64_t body_most;  /* most bytes of its body, set by route_admit */
    enum fault barred;  /* why access is refused, unless a key stands in the body; set by route_admit */
    int64_t dhop_stamp; /* dhop, checked before the operation; 0: absent */
    const char *request_id;
    struct bytes trace;  /* model/trace.h; of a task's run the task's; NO_BYTES: absent or invalid */
    int64_t deadline_ms; /* monotonic */
    const char *misuse;  /* the line of the log about a module's misuse that was written last; NULL: none */
    bool is_visitor;     /* another worker has a session for the namespace, and serves what needs one */
};

/* Is it decided for each document what the caller may read? */
static inline bool call_is_judged(const struct call *call)
{
    return call->rules || call->filters;
}

#endif
