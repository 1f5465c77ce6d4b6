/* namespace: the code of a namespace, and its configuration: the item Conf of the document Namespace/<code>
 * in the namespace z, a JSON object.  The server and stampctl read and validate it here.
 *
 * | member   | value                                      | absent                       |
 * | ---      | ---                                        | ---                          |
 * | database | NAME or NAME@CELL: settings_cell_of        | the namespace does not exist |
 * | access   | closed, read, open or rules                | closed                       |
 * | state    | an integer from 0 to 3, see enum ns_state  | 0                            |
 * | message  | text for callers about the state           | none                         |
 * | origins  | array of CORS origins                      | none                         |
 * | label    | text for clients                           | none                         |
 * | theme    | text for clients                           | none                         |
 * | reads    | codes of namespaces that this one reads    | none                         |
 * | readers  | codes of namespaces that may read this one | none                         |
 * | options  | object for clients                         | none                         |
 * | quotas   | see model/quotas.h                         | those of z                   |
 * | records  | see model/record_rules.h                   | nobody has a right           |
 * | accounts | see struct ns_accounts                     | it has no accounts           |
 * | spread   | true: its records are on several hosts     | each host has its own        |
 * | workers  | see model/task/worker_queues.h             | nobody takes tasks           |
 *
 * A namespace reads another one if both name each other so.
 *
 * Accounts need the access rules or closed.  With any other access, `accounts` counts as malformed and the
 * access as closed, so that no change of the access discloses the documents of accounts.
 *
 * Other members are allowed and ignored. */
#ifndef STAMPD_MODEL_NAMESPACE_H
#define STAMPD_MODEL_NAMESPACE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "edge/json/json.h"
#include "model/account/issuer.h"
#include "model/quotas.h"
#include "model/record_rules.h"
#include "model/account/relying_party.h"
#include "model/task/worker_queues.h"

enum {
    NAMESPACE_CODE_MOST = 16,
    NAMESPACE_MESSAGE_MOST = 1000, /* bytes, like those below */
    NAMESPACE_LABEL_MOST = 200,
    NAMESPACE_THEME_MOST = 64,
    NAMESPACE_OPTIONS_MOST = 4096,
    NAMESPACE_OPTIONS_DEPTH = 16,
    NAMESPACE_ORIGINS_MOST = 32,
    NAMESPACE_READERS_MOST = 32,
    NAMESPACE_SESSION_DAYS_MOST = 3650,
    NAMESPACE_SESSIONS_MOST = 100 /* of one account */
};

enum access_mode { ACCESS_CLOSED, ACCESS_READ, ACCESS_OPEN, ACCESS_RULES };

/* What is served.  The effective state is the highest of a namespace's own and that of z. */
enum ns_state {
    NS_ON,
    NS_READONLY, /* nothing is changed, by anybody; tasks wait */
    NS_OFF,      /* only administrators are served; tasks wait */
    NS_GONE      /* nothing is served */
};

/* Who may make an account by the operation `register`. */
enum ns_registration { REGISTRATION_CLOSED, REGISTRATION_INVITATION, REGISTRATION_OPEN };

struct letter_templates; /* letter.h */

/* The callers that may ask for the id of an account by its name (operation `whois`). */
enum ns_whois { WHOIS_NOBODY, WHOIS_ACCOUNT, WHOIS_ROLE };

/* The member accounts: {"registration":"closed","anonymous":false,"session_days":30,"sessions_most":32,
 * "confirm":"optional","mail_login":false,"whois":"nobody","whois_by":"name"}, with these defaults,
 * "anonymous_days", "mail", "issuers" and "passkeys". */
struct ns_accounts {
    bool is_on; /* the namespace has accounts */
    enum ns_registration registration;
    bool has_anonymous; /* accounts without a name may be made, whatever the registration */
    int64_t session_days, sessions_most;
    int64_t anonymous_days; /* unused after its last session, an anonymous account is deleted; 0: never */
    struct relying_party *passkeys; /* NULL: nobody signs in by passkey */
    bool needs_confirmation; /* "confirm":"required": names are addresses that their owners have confirmed */
    bool has_mail_login;     /* people sign in by the link of a mail, too */
    enum ns_whois whois;
    struct bytes whois_role;             /* of WHOIS_ROLE */
    bool has_whois_by_address;           /* "whois_by":"address": confirmed addresses are names there */
    const struct letter_templates *mail; /* NULL: the standard mails */
    const struct issuers *issuers;       /* issuer.h; NULL: none */
    int64_t version; /* moves with each change; not of the content: set by configurations.c */
};

struct ns_conf {
    enum access_mode mode;
    enum ns_state state;                 /* NS_OFF: also if the member is malformed; NS_READONLY: also if
                                            `quotas` is */
    struct bytes database;               /* empty: no configuration, or none that can be read */
    bool is_encrypted;                   /* contents are encrypted at rest */
    struct bytes message;                /* empty: none; so are label and theme */
    struct bytes label, theme;           /* for clients */
    struct bytes options;                /* as written; empty: none */
    const struct json *origins;          /* an array: origins whose pages may read answers; NULL: none */
    const struct quotas *quotas;         /* NULL: none */
    const struct record_rules *records;  /* NULL: none */
    bool is_spread;                      /* several hosts hold its records together */
    const struct json *reads, *readers;  /* arrays of codes; NULL: none */
    const struct worker_queues *workers; /* NULL: none */
    struct ns_accounts accounts;
    struct bytes accounts_text, records_text, workers_text; /* as written; empty: none */
    int64_t build;     /* of clients: the stamp of the last change that they must notice; 0: none; not
                          of the content: set by operation/access/configurations.c */
    const char *wrong; /* the first malformed member; "": the text is no object; NULL: none */
};

/* Parses the content of the item Conf, NO_BYTES: there is none.  A malformed member counts as absent, except
 * for the state, and for the quotas: so that nothing that they would limit is written, it is read-only.  The
 * texts are slices of the content, or in the arena. */
struct ns_conf namespace_read(struct arena *arena, struct bytes content);
/* What is expected of a member that may be changed while the namespace is in use: all but `database`; NULL:
 * the value is valid. */
const char *namespace_refuse_member(struct arena *arena, struct bytes name, const struct json *value);
/* What is wrong with a change of the whole configuration, each member of which is valid: one sentence about
 * the member `accounts`; NULL: nothing.  `before` may be NO_BYTES. */
const char *namespace_refuse_change(struct arena *arena, struct bytes before, struct bytes after);
/* What is expected of the first member of `after` that is malformed and was not so written `before`
 * (NO_BYTES: there was none); NULL: none is.  `member_r`: its name; "": the text is no object.  `after` may
 * be NO_BYTES. */
const char *namespace_refuse_content(struct arena *arena, struct bytes before, struct bytes after,
                                     const char **member_r);
/* Appends the members that every caller may know, those that are set: `,"message":…,"label":…`. */
void namespace_write_shown(const struct ns_conf *conf, struct builder *builder);
/* The names of these members, for messages. */
#define NAMESPACE_MEMBERS                                                                                    \
    "access accounts label message options origins quotas readers reads records spread state theme workers"

/* Is it a code: ^[a-z][a-z0-9]{0,15}$ ?  Reserved ones included. */
bool namespace_is_code(const char *code);
/* Is the code reserved for the server (ping live ready metrics console doc qm…)? */
bool namespace_is_reserved(const char *code);
/* Can it name a database without quotes in nginx's files: ^[A-Za-z_][A-Za-z0-9_-]*$, then, if it is in
 * another cell than that of z, @ and the cell's name; 63 bytes at most? */
bool namespace_is_database(const char *name);
/* Is the code in the array, of a configuration? */
bool namespace_is_listed(const struct json *codes, struct bytes code);
bool namespace_is_access(const char *word);
const char *namespace_access_word(enum access_mode mode);
/* The word for a state: on, readonly, off, gone; and the reverse, false: it is none of them. */
const char *namespace_state_word(enum ns_state state);
MUST_USE bool namespace_find_state(const char *word, enum ns_state *state_r);
/* Is it "*", or an origin as browsers send it: scheme://host or scheme://host:port, in lower case? */
bool namespace_is_origin(const char *text);

/* The JSON object `text` (NO_BYTES: {}) with the text member `name` set to `value`, or removed when NULL. All
 * other members stay as they were written. */
struct bytes namespace_set_member(struct arena *arena, struct bytes text, const char *name,
                                  const char *value);
/* The same with a member of any kind, given as JSON; removed when NO_BYTES. */
struct bytes namespace_set_json(struct arena *arena, struct bytes text, const char *name, struct bytes value);

#endif
