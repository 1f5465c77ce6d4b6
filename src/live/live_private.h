/* live_private: shared by the files of the process for live events, src/live/live*.c only.
 *
 * live.c           the process: loop, signals, the change feed
 * live_endpoint.c  requests: question, limits, refusals
 * live_listener.c  an open connection: its events, keep-alive, end
 * live_rules.c     access rules, also after they have changed
 * live_namespace.c one namespace: its database connection, and the order of its queries
 * live_news.c      changes received, and the queries that complete them
 * live_look.c      catch-up: changes since a horizon, for new, resumed and interrupted streams
 * live_round.c     horizons, and when they may advance */
#ifndef STAMPD_LIVE_LIVE_PRIVATE_H
#define STAMPD_LIVE_LIVE_PRIVATE_H

#include "base/arena.h"
#include "base/settings.h"
#include "segment/feed.h"
#include "edge/events.h"
#include "edge/pg.h"
#include "operation/access.h"
#include "live/live_index.h"
#include "live/live_shares.h"
#include "segment/namespaces.h"
#include "segment/slots.h"
#include "serve/response.h"

enum { LIVE_CODE_BYTES = 17, LIVE_SECRET_BYTES = 129, LIVE_TICK_MS = 250 };

/* The transactions whose changes a client has received: all below `horizon`. */
struct live_horizon {
    int64_t life;    /* of the database */
    int64_t horizon; /* 0: unknown */
    int64_t floor;   /* zombies below it were purged */
};

/* --- listeners --- */

enum live_state { LIVE_WAITS_FOR_RULES, LIVE_WAITS_FOR_HORIZON, LIVE_OPEN };

/* State needed until the answer begins. */
struct live_opening {
    struct arena *arena;
    struct live_question question;
    struct response_form form;
    struct bytes origin;
    bool comes_again;         /* an EventSource: reconnects by itself unless the status is other than 200 */
    struct live_horizon last; /* of the token; horizon 0: a new stream */
    bool is_settled;          /* `reply` is its answer; it waits for the rules only to know the origin */
    struct reply reply;
};

struct live_listener {
    struct live_feed feed; /* first: a listener is found by its feed */
    struct live *live;
    struct live_namespace *ns;
    struct exchange *exchange;
    struct live_opening *opening; /* NULL: it is open */
    enum live_state state;
    bool is_administrator;
    bool must_reset;                       /* a reset is to be sent: anything may have changed */
    bool was_told;                         /* an event was sent since its last id, or it has no id yet */
    struct live_horizon known;             /* of its last id; horizon 0: none */
    uint64_t session;                      /* in the segment; 0: none given */
    struct live_share *share;              /* of its client; NULL: none */
    size_t bytes;                          /* of memory, about */
    int64_t kept_ms;                       /* monotonic: last keep-alive */
    struct live_listener *next, *previous; /* in the namespace */
    struct live_listener *next_kept, *former_kept; /* in the order of keep-alive */
    struct live_listener *next_waiting;            /* for a horizon */
};

/* Answers a request that does not become a stream. */
void live_answer(struct exchange *exchange, struct live_opening *opening, struct reply *reply);
/* Takes ownership of the exchange; its conditions have been checked.  The definitions are in the index from
 * now on.  `client` 0: no share. */
void live_listener_create(struct live *live, struct live_namespace *ns, struct exchange *exchange,
                          struct live_opening *opening, uint64_t client, bool is_administrator);
/* Answers with a fault, or, if the stream is open, sends the reason for its end; frees the listener. */
void live_listener_refuse(struct live_listener *listener, enum fault fault, const char *argument,
                          const char *detail);
/* Ends the stream; the client reconnects. */
void live_listener_end(struct live_listener *listener);
/* The rules allow the listener: takes the next step. */
void live_listener_admit(struct live_listener *listener);
/* Answers with opening->reply; frees the listener. */
void live_listener_answer(struct live_listener *listener);
/* Begins the answer; `is_reset`: the client's copies may be old. */
void live_listener_open(struct live_listener *listener, const struct live_horizon *known, bool is_reset);
/* Writes changes while there is room. */
void live_listener_flush(struct live_listener *listener);
/* Writes the matches of all listeners of a namespace. */
void live_flush(struct live_namespace *ns);
/* All changes below the horizon have been sent. */
void live_listener_know(struct live_listener *listener, const struct live_horizon *known);
/* Sends the keep-alives that are due. */
void live_keep_alive(struct live *live);

/* Writes and reads an event id; `ns` is the code of the namespace, `secret` the key that seals its ids. */
struct bytes live_token_write(struct arena *arena, struct bytes secret, struct bytes ns,
                              const struct live_horizon *known);
MUST_USE bool live_token_read(struct arena *arena, struct bytes secret, struct bytes ns, struct bytes token,
                              struct live_horizon *known_r);

/* --- a namespace --- */

enum live_link_state { LINK_CLOSED, LINK_CONNECTING, LINK_IDLE, LINK_ASKING };
enum live_job { JOB_LISTEN, JOB_SECRET, JOB_RULES, JOB_NEWS, JOB_OPEN, JOB_GAP, JOB_ROUND, JOBS };
enum live_round {
    ROUND_RESTS,
    ROUND_ASKS,
    ROUND_WAITS_FOR_ECHO,
    ROUND_WAITS_FOR_WORKERS,
    ROUND_WAITS_FOR_NEWS
};

/* A changed document whose details must be queried. */
struct live_news {
    struct bytes class, id;
    int64_t version; /* 0: unknown */
};
struct live_queue {
    struct arena *arena;
    struct live_news *items;
    size_t count, next;
};

struct live_rules {
    bool is_known, is_wanted, is_asked; /* valid if only the first is true */
    struct arena *arena;
    struct ns_conf conf;
};

struct live_namespace {
    struct live_namespace *next;
    struct live *live;
    char code[LIVE_CODE_BYTES], database[NAMESPACES_DATABASE_BYTES + 1];
    int ns;                         /* -1: not known to be a namespace */
    char secret[LIVE_SECRET_BYTES]; /* seals ids; "": not yet read on this connection */
    struct live_index *index;
    struct live_listener *listeners, *first_waiting, *last_waiting;
    size_t listener_count, admitted_count; /* the latter need its database */
    size_t memory;                         /* of its listeners */
    struct live_rules rules;

    struct pg *pg;
    struct pg_options options;
    struct watch *watch;
    enum live_link_state link;
    enum pg_progress progress;
    bool is_ready;     /* the socket, for the next connection step */
    bool is_listening; /* LISTEN has succeeded */
    int failures;
    int64_t retry_ms, unneeded_ms; /* monotonic; 0: at once, needed */
    enum live_job job;
    struct arena *arena; /* of the current query and its result */
    struct pg_result *result;
    enum fault fault;

    struct live_listener *opening;              /* of JOB_OPEN; NULL: it has disconnected */
    struct live_namespace *ruled;               /* of JOB_RULES */
    struct live_queue news[2];                  /* the one being queried; the one being filled */
    uint64_t news_heard, news_asked, news_told; /* counters of all news ever queued */

    struct live_horizon known; /* of all open listeners */
    bool wants_gap;
    uint32_t missed; /* losses handled so far */
    struct arena *gap_arena;
    struct definition *gap;     /* to be queried */
    size_t gap_count, gap_next; /* gap_count 0 and gap NULL: no gap is being closed */
    struct live_horizon gap_known;
    bool gap_is_first;

    enum live_round round;
    bool is_told_of;                /* there was a change since the last round */
    bool was_clean, round_is_clean; /* no old sessions at the last query; the last two */
    uint64_t round_heard;           /* of the news */
    int64_t round_ms;               /* monotonic: time of the last query */
    uint64_t round_number;
    struct live_horizon round_known;
    int64_t round_next;
    uint64_t round_busy[SLOTS_WORDS]; /* entries whose commit may not have been received */
};

/* Finds or creates it; NULL: the names are too long.  It has no number in the segment until
 * live_namespace_enter. */
struct live_namespace *live_namespace_get(struct live *live, struct bytes code, struct bytes database);
/* The rules have shown that it is a namespace: assigns its number.  False: the segment has no room. */
MUST_USE bool live_namespace_enter(struct live_namespace *ns);
void live_namespace_destroy(struct live_namespace *ns);
/* Continues every step that can proceed. */
void live_namespace_go_on(struct live_namespace *ns);
/* Changes may have been missed: the database will be queried. */
void live_namespace_miss(struct live_namespace *ns);
/* Handles a notification of the database and advances its slot stamps. */
void live_namespace_notice(struct live_namespace *ns, struct bytes payload);
/* Empties the queues: all news received counts as sent. */
void live_news_clear(struct live_namespace *ns);
/* Called periodically. */
void live_namespace_tick(struct live_namespace *ns, int64_t now_ms);
/* Handles the commit of a document; version 0: unknown. */
void live_namespace_hear(struct live_namespace *ns, struct bytes class, struct bytes id, int64_t version);
/* The queue of listeners that wait for a horizon: add, remove, take the next (NULL: none). */
void live_namespace_queue(struct live_namespace *ns, struct live_listener *listener);
void live_namespace_forget(struct live_namespace *ns, struct live_listener *listener);
struct live_listener *live_namespace_take_waiting(struct live_namespace *ns);

/* --- queries: is one due; sends it; handles its result; handles a fault that leaves the connection usable
 * (NULL: reconnect) --- */
struct live_asking {
    bool (*is_due)(struct live_namespace *ns);
    MUST_USE enum fault (*ask)(struct live_namespace *ns);
    void (*take)(struct live_namespace *ns);
    void (*failed)(struct live_namespace *ns, enum fault fault);
};
enum live_statement {
#define STATEMENT(word, label, count, text) LIVE_STATEMENT_##word,
#include "live/live_statement_table.h"
#include "operation/reply.h"
#undef STATEMENT
    LIVE_STATEMENTS
};
extern const struct pg_statement live_statements[LIVE_STATEMENTS];
enum { LIVE_ROW_OF_ALL, LIVE_ROW_OF_DOCUMENT, LIVE_ROW_OF_COLLECTION }; /* kinds of rows in results */
struct bytes live_number_text(struct arena *arena, int64_t number);
extern const struct live_asking live_asks_listen, live_asks_secret, live_asks_rules, live_asks_news,
    live_asks_open, live_asks_gap, live_asks_round;
/* The query of a listener has failed. */
void live_open_failed(struct live_namespace *ns, enum fault fault);
/* Reads the horizon of a result, and the first transaction number not assigned yet. */
MUST_USE bool live_read_horizon(const struct pg_result *result, struct live_horizon *known_r,
                                int64_t *next_r);
/* Are all changes since then still recorded? */
MUST_USE bool live_is_within_reach(const struct live_horizon *since, const struct live_horizon *known,
                                   int64_t next);
/* All listeners have received all changes below the horizon. */
void live_advance(struct live_namespace *ns, const struct live_horizon *known);
/* Continues a round as far as possible; true: check again in some milliseconds. */
bool live_round_go_on(struct live_namespace *ns);
/* Handles the echo of a round. */
void live_round_hear(struct live_namespace *ns, struct bytes payload);

/* --- rules --- */
/* The result of a pending query will not come. */
void live_rules_forget(struct live *live);
/* Marks all rules, or those of one namespace, to be read again. */
void live_rules_doubt(struct live *live);
void live_rules_doubt_one(struct live *live, struct bytes code);
/* Refuses the listeners that wait for rules, which cannot be read. */
void live_rules_failed(struct live *live);
/* The rules are known: admits the listener, or answers and frees it. */
void live_rules_apply(struct live_listener *listener);

/* --- the process --- */

struct live {
    const struct settings *settings;
    struct segment *segment;
    struct events *events;
    struct event_endpoint *endpoint;
    struct subscriber *subscriber;
    struct watch *subscriber_watch, *signal_watch;
    struct event_timer *tick, *soon, *leave;
    bool is_soon;
    int signals;
    struct live_namespace *namespaces, *z;
    struct live_listener *first_kept, *last_kept; /* the first one's keep-alive is due next */
    size_t listener_count, memory, connections_most;
    struct live_shares *shares;
    uint64_t nonce; /* of this process */
    bool is_leaving;
    struct arena *arena; /* scratch memory of one step */
    struct builder text, key;
};

/* Handles all events of the change feed. */
void live_hear(struct live *live);
/* Continues rounds in some milliseconds. */
void live_look_soon(struct live *live);
/* Handles a request of the endpoint. */
void live_serve(void *context, struct exchange *exchange);

#endif
