/* account: accounts of people and programs in a namespace: their documents, and their tokens.
 *
 * An account is the document Account/<id>.  Its items:
 *
 * - Self: {"name","address","confirmed","disabled","hidden","created"}; without a name it is anonymous;
 *   {"issuer","subject"} if it is that of an OpenID provider (issuer.h)
 * - Secret, raw: the digest of the password (password.h); absent: nobody can log in
 * - Roles: {"roles":[…]}
 * - Sess, key: SHA-256 of a token's secret in hexadecimal: {"created","expires","device"}; a service key has
 *   no expires
 *
 * Login/<name in lower case>, item Acc {"account":id}, makes names unique.  Ticket/<SHA-256 of a secret> is
 * an invitation, item Invite {"expires","roles"}, or one to a document
 * (operation/accounts/membership_ticket.h).  Times are stamps.
 *
 * A token is "st_" (a session) or "sk_" (a service key), the id, a dot, and a secret of 256 bits; the
 * database has the digest of the secret alone.  Pure: no I/O, no random bytes. */
#ifndef STAMPD_MODEL_ACCOUNT_ACCOUNT_H
#define STAMPD_MODEL_ACCOUNT_ACCOUNT_H

#include "base/arena.h"
#include "base/builder.h"
#include "edge/json/json.h"
#include "model/document/document.h"

enum {
    ACCOUNT_ID_BYTES = 16,
    ACCOUNT_ID = 22, /* characters of base64url */
    ACCOUNT_SECRET_BYTES = 32,
    ACCOUNT_SECRET = 43,
    ACCOUNT_NAME_MOST = 128, /* bytes, like those below */
    ACCOUNT_ADDRESS_MOST = 254,
    ACCOUNT_PASSWORD_LEAST = 8,
    ACCOUNT_PASSWORD_MOST = 1024,
    ACCOUNT_DEVICE_MOST = 200,
    ACCOUNT_ROLE_MOST = 64,
    ACCOUNT_KEYS_MOST = 100 /* service keys of one account */
};

/* --- tokens --- */

struct account_token {
    bool is_service;
    struct bytes account, secret; /* slices of the token */
};
/* Does the text claim to be a token, by its prefix? */
bool account_is_token(struct bytes text);
/* False: it has not the form of a token. */
MUST_USE bool account_read_token(struct bytes text, struct account_token *token_r);
/* The value of the namespace's cookie in the header Cookie, a slice; NO_BYTES: none.  Of several, the first.
 */
struct bytes account_find_cookie(struct bytes header, struct bytes ns);
#define ACCOUNT_COOKIE "__Host-stampd-"

/* --- names --- */

/* The id of a name's document: the name in lower case; false: it is no name: 1 to 128 visible ASCII
 * characters. */
MUST_USE bool account_normalise(struct arena *arena, struct bytes name, struct bytes *normal_r);
/* Has it the form of a mail address: visible ASCII characters around one "@"? */
bool account_is_address(struct bytes address);
/* 1 to 64 letters, digits, ".", "_" and "-". */
bool account_is_role(struct bytes role);
/* An array of at most RULES_ROLES_MOST roles. */
bool account_are_roles(const struct json *roles);
/* Valid UTF-8 of at most ACCOUNT_DEVICE_MOST bytes, without control characters? */
bool account_is_device(struct bytes device);

/* --- documents --- */

struct account {
    struct bytes name, address;   /* empty: none */
    struct bytes issuer, subject; /* of an OpenID provider; empty: none */
    bool is_confirmed, is_disabled;
    bool is_hidden; /* nobody finds it by its name or address */
    int64_t created;
    const struct bytes *roles; /* sorted, each once */
    size_t role_count;
};
/* Reads the items Self and Roles; the texts are slices of `self` and `roles`, or in the arena.  NO_BYTES: the
 * item is absent.  False: a content is malformed. */
MUST_USE bool account_read(struct arena *arena, struct bytes self, struct bytes roles,
                           struct account *account_r);
/* The content of Self. */
struct bytes account_write_self(struct arena *arena, const struct account *account);
/* The content of Roles. */
struct bytes account_write_roles(struct arena *arena, const struct json *roles);

struct account_session {
    int64_t created, expires; /* expires 0: never */
    bool is_service;
    struct bytes device; /* empty: none */
};
MUST_USE bool account_read_session(struct arena *arena, struct bytes content,
                                   struct account_session *session_r);
struct bytes account_write_session(struct arena *arena, const struct account_session *session);
/* By the clock of documents: `minute` since 1970. */
bool account_is_over(int64_t expires, int64_t minute);
/* The stamp of that minute. */
int64_t account_stamp_of(int64_t minute);

/* The live item of the class and key in a document; NO_BYTES: none. */
struct bytes account_find(const struct document *document, struct bytes iclass, struct bytes key);

#endif
