/* response: a reply as HTTP.  The only place where a fault becomes a status and words; no text of the
 * database, of a library or of the file system passes through here. */
#ifndef STAMPD_SERVE_RESPONSE_H
#define STAMPD_SERVE_RESPONSE_H

#include "base/bytes.h"
#include "operation/call.h"

/* How the request wants to be answered. */
struct response_form {
    bool is_head;           /* the head alone, as it would be with its body */
    bool is_for_people;     /* a browser's GET: faults as plain text */
    bool is_resource;       /* a document: its own methods, and more statuses */
    bool is_manager;        /* a queue manager: POST only, and the same statuses */
    bool has_seed_status;   /* setting fault_status = seed: an operation's faults are 400 or 404 */
    bool has_credentials;   /* the request bears some: what is closed for them is 403, else 401 */
    bool is_live;           /* live events: GET and POST */
    const char *request_id; /* given back when it has the form of one; may be NULL */
    const char *build;      /* the setting; "": none is announced */
    bool has_origins;       /* the answer depends on the origin of the request */
    const char *origin;     /* whose pages may read the answer, or "*"; NULL: nobody's of another origin */
    const char *location;   /* path of what a PUT may create; NULL: another method */
};

/* The reply's own status, or that of its fault as the table of faults says; 413 for a body over its limit,
 * 401 for what is closed without credentials. */
int response_status(const struct response_form *form, const struct reply *reply);

/* Appends the CGI head, with its empty line, to `head`.  A fault's text is written to reply->body, which must
 * be empty then; a success's body is sent as it is. */
void response_compose(const struct response_form *form, struct reply *reply, struct builder *head);
/* What follows the head: nothing for a HEAD request. */
struct bytes response_body(const struct response_form *form, const struct reply *reply);

#endif
