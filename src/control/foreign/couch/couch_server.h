/* couch_server: requests to a server of CouchDB's protocol, repeated while it is away, fails, or sends half
 * of an answer. */
#ifndef STAMPD_CONTROL_FOREIGN_COUCH_COUCH_SERVER_H
#define STAMPD_CONTROL_FOREIGN_COUCH_COUCH_SERVER_H

#include "base/arena.h"
#include "base/builder.h"

enum { COUCH_ANSWER_MOST = 256 << 20 }; /* bytes of a page */

struct couch_server;
struct couch_server_options {
    const char *url;     /* of the database */
    const char *ca_file; /* PEM; NULL: the system's authorities */
    const char *login;   /* "name:password"; NULL: none */
    int64_t patience_s;  /* how long a request is repeated */
};

/* Is it the address of a database, without a password, and is a login not sent in clear to another host? Else
 * reports why not. */
MUST_USE bool couch_server_check(const char *url, bool has_login);
struct couch_server *couch_server_open(const struct couch_server_options *options)
    __attribute__((returns_nonnull));
void couch_server_close(struct couch_server *server); /* NULL is allowed */

enum couch_answer { COUCH_ANSWERED, COUCH_TOO_LARGE, COUCH_REFUSED };
/* GET of the URL followed by `query` ("" or "/…").  COUCH_ANSWERED: an object in JSON that is whole, as far
 * as its brackets; valid until the next call.  COUCH_REFUSED: reported. */
MUST_USE enum couch_answer couch_server_get(struct couch_server *server, const char *query,
                                            struct bytes *body_r);

/* Appends a text as a part of a query. */
void couch_server_escape(struct builder *query, struct bytes text);

#endif
