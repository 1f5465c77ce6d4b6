/* response: turns a reply into HTTP.  The only place where a fault becomes a status and a text; no text of
 * the database, a library or the file system gets through. */
#ifndef STAMPD_HTTP_RESPONSE_H
#define STAMPD_HTTP_RESPONSE_H

#include "base/builder.h"
#include "operation/reply.h"

#define UPLOAD_VERSION "1.0.0" /* of the tus protocol */

/* The form of the answer. */
struct response_form {
    bool is_head;           /* the head alone, as it would be with its body */
    bool is_for_people;     /* a browser's GET: faults as plain text */
    bool is_resource;       /* a document: it has its own methods and more statuses */
    bool is_attachment;     /* beside is_resource: an attachment of a document */
    bool is_digest;         /* beside is_attachment: named by its digest, GET and HEAD */
    bool is_upload;         /* beside is_resource: uploads in parts */
    bool is_part;           /* beside is_upload: one of them */
    int64_t upload_most;    /* of is_upload: the largest file */
    bool is_manager;        /* a queue manager: POST only, and the same statuses */
    bool has_few_statuses;  /* setting fault_status = few: an operation's faults are 400 or 404 */
    bool has_credentials;   /* the request has some: what they do not allow is 403, else 401 */
    bool is_file;           /* a file of a namespace: GET and HEAD */
    bool is_live;           /* live events: GET and POST */
    const char *request_id; /* sent back if it is well formed; may be NULL */
    const char *build;      /* the setting; "": not sent */
    bool has_origins;       /* the answer depends on the origin of the request */
    bool may_send_cookies;  /* pages of that origin may send the cookie of a session */
    const char *origin;     /* whose pages may read the answer, or "*"; NULL: no other origin's */
    const char *judged; /* the code of the fault, for nginx, that asks about a large body; NULL: not asked */
    const char *location; /* path of the document that a PUT may create; NULL: another method */
};

/* The reply's own status, or that of its fault in the table of faults; 413 for a body over its limit, 401 for
 * access that needs credentials when there are none. */
int response_status(const struct response_form *form, const struct reply *reply);

/* Appends the CGI head, with its empty line, to `head`.  The text of a fault is written to reply->body, which
 * must be empty then; the body of a success is sent as it is. */
void response_compose(const struct response_form *form, struct reply *reply, struct builder *head);
/* What follows the head: nothing for a HEAD request. */
struct bytes response_body(const struct response_form *form, const struct reply *reply);

#endif
