/* resp_session: what a connection has that speaks RESP, and what all its commands have in common: rights,
 * terms, admission, and the words of refusals. */
#ifndef STAMPD_JOURNAL_RESP_RESP_SESSION_H
#define STAMPD_JOURNAL_RESP_RESP_SESSION_H

#include "journal/journal_session.h"
#include "journal/resp/resp.h"

enum {
    RESP_NAME_MOST = 64,
    RESP_SUBSCRIPTIONS_MOST = 256,
    RESP_TRIES = 100,
    RESP_REFUSAL_MOST = 512,
    RESP_KEYS_MOST = 1000
};

/* A channel, or a pattern of channels. */
struct resp_subscription {
    bool is_pattern;
    struct bytes name; /* its own memory */
};

struct resp_session {
    struct resp_reader reader;
    int version;
    uint64_t id;
    char name[RESP_NAME_MOST + 1], library[RESP_NAME_MOST + 1], library_version[RESP_NAME_MOST + 1];
    /* Of a command that is done in parts. */
    bool has_begun, is_encrypted;
    size_t done;
    int64_t count;
    /* What it listens to: resp_listener.h. */
    struct resp_subscription subscriptions[RESP_SUBSCRIPTIONS_MOST];
    size_t subscription_count;
    uint64_t position;
    bool is_behind; /* there is more to report than was reported */
};

/* A command of this session, whose words it reads; appends its reply. */
typedef enum journal_next resp_function(struct journal_session *session, struct builder *out);

static inline struct bytes resp_session_word(const struct journal_session *session, size_t place)
{
    return resp_word(&session->resp->reader, place);
}

static inline size_t resp_session_count(const struct journal_session *session)
{
    return session->resp->reader.count;
}

enum journal_next resp_session_refuse(struct builder *out, const char *text);
enum journal_next resp_session_refuse_outcome(struct builder *out, enum records_outcome outcome);
/* A null. */
enum journal_next resp_session_reply_null(const struct journal_session *session, struct builder *out);

/* Is it a key, and may the caller read or write it?  False: it is refused. */
MUST_USE bool resp_session_may(const struct journal_session *session, struct bytes key, bool is_write,
                               struct builder *out);
/* Is the namespace served now?  Notes in the session whether it is encrypted.  False: `next_r`. */
MUST_USE bool resp_session_admit(struct journal_session *session, bool is_write, struct builder *out,
                                 enum journal_next *next_r);
/* Runs a command that may be run, within the caller's terms.  Anything but JOURNAL_GO_ON: nothing was done.
 * False: it was refused, by these terms. */
MUST_USE bool resp_session_run(struct journal_session *session, struct records_command *command,
                               struct builder *out, enum journal_next *next_r,
                               enum records_outcome *outcome_r, struct records_found *found_r);

/* The database of the caller's namespace by its number: as journal_databases says, or 0.  -1: it has none. */
int resp_session_database(const struct journal_session *session);
/* The namespace that has this number or name; NO_BYTES: none. */
struct bytes resp_session_namespace(const struct journal_session *session, struct bytes name);

#endif
