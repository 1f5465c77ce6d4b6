/* live_private: what the files of the process for live events share; for src/serve/live*.c only.
 *
 * live.c           the process: loop, signals, what workers tell
 * live_door.c      requests: question, limits, refusals
 * live_listener.c  an open connection: its events, keep-alive, end
 * live_rules.c     who may listen, also after the rules have changed
 * live_namespace.c     one namespace: its connection to the database, and whose turn it is to ask
 * live_news.c      what is heard of documents, and what the database is asked about them
 * live_look.c      what has changed since a horizon: beginnings, resumption, gaps
 * live_round.c     horizons, and when they may be claimed */
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

/* Up to which transactions a holder has been told of everything; all below `horizon`. */
struct live_horizon {
    int64_t life;    /* of the database */
    int64_t horizon; /* 0: nothing is known */
    int64_t floor;   /* documents that are no more, below: zombies purged */
};

/* --- listeners --- */

enum live_state { LIVE_WAITS_FOR_RULES, LIVE_WAITS_FOR_HORIZON, LIVE_OPEN };

/* What is needed until the answer begins. */
struct live_opening {
    struct arena *arena;
    struct live_question question;
    struct response_form form;
    struct bytes origin;
    bool comes_again; /* an EventSource: by itself, unless it is answered with another status than 200 */
    struct live_horizon last; /* of the token; horizon 0: a fresh beginning */
    bool is_settled;          /* `reply` answers it, and waits for the rules only to name the origin */
    struct reply reply;
};

struct live_listener {
    struct live_feed feed; /* first: a listener is found by its ears */
    struct live *live;
    struct live_namespace *ns;
    struct exchange *exchange;
    struct live_opening *opening; /* NULL: it is open */
    enum live_state state;
    bool is_administrator;
    bool must_reset;                               /* tell that anything may have changed */
    bool was_told;                                 /* something, since its last id, or has none yet */
    struct live_horizon known;                     /* of its last id; horizon 0: it has none */
    uint64_t session;                              /* in the segment; 0: it names none */
    struct live_share *share;                      /* of its client; NULL: nobody's */
    size_t bytes;                                  /* of memory, about */
    int64_t kept_ms;                               /* monotonic: last keep-alive */
    struct live_listener *next, *previous;         /* in the namespace */
    struct live_listener *next_kept, *former_kept; /* in the order of keep-alive */
    struct live_listener *next_waiting;            /* for a horizon */
};

/* Answers what cannot be listened to. */
void live_answer(struct exchange *exchange, struct live_opening *opening, struct reply *reply);
/* Takes the exchange over; conditions are checked, the definitions are in the index from now on; `client` 0:
 * nobody's share. */
void live_listener_create(struct live *live, struct live_namespace *ns, struct exchange *exchange,
                          struct live_opening *opening, uint64_t client, bool is_administrator);
/* Answers with a fault, or, when it is open, says why it ends; then it is no more. */
void live_listener_refuse(struct live_listener *listener, enum fault fault, const char *argument,
                          const char *detail);
/* Ends the stream; the client comes again. */
void live_listener_end(struct live_listener *listener);
/* The rules allow it: what is next. */
void live_listener_admit(struct live_listener *listener);
/* Answers with opening->reply; then it is no more. */
void live_listener_answer(struct live_listener *listener);
/* The answer begins; `is_reset`: what the client holds may be old. */
void live_listener_open(struct live_listener *listener, const struct live_horizon *known, bool is_reset);
/* Writes what has changed, as far as there is room. */
void live_listener_flush(struct live_listener *listener);
/* All of them: what was touched; in one namespace. */
void live_flush(struct live_namespace *ns);
/* Everything before the horizon has been told. */
void live_listener_know(struct live_listener *listener, const struct live_horizon *known);
/* Those whose time has come. */
void live_keep_alive(struct live *live);

/* The text of an id, and back; `space` is the code of the namespace, `secret` what seals its ids. */
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

/* A document that has changed, of which the database has to tell more. */
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
    bool is_known, is_wanted, is_asked; /* believed when only the first holds */
    struct arena *arena;
    struct ns_conf conf;
};

struct live_namespace {
    struct live_namespace *next;
    struct live *live;
    char code[LIVE_CODE_BYTES], database[NAMESPACES_DATABASE_BYTES + 1];
    int ns;                         /* -1: whether it is a namespace is not known yet, or it is none */
    char secret[LIVE_SECRET_BYTES]; /* seals ids; "": not read by this connection yet */
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
    bool is_ready;     /* the socket, for the next step of connecting */
    bool is_listening; /* LISTEN was answered */
    int failures;
    int64_t retry_ms, unneeded_ms; /* monotonic; 0: at once, needed */
    enum live_job job;
    struct arena *arena; /* of the question that is asked, and its answer */
    struct pg_result *result;
    enum fault fault;

    struct live_listener *opening;              /* of JOB_OPEN; NULL: it has gone */
    struct live_namespace *ruled;               /* of JOB_RULES */
    struct live_queue news[2];                  /* in front, which is asked about; behind */
    uint64_t news_heard, news_asked, news_told; /* of all that ever waited */

    struct live_horizon known; /* of all who are open */
    bool wants_gap;
    uint32_t missed; /* that have been looked after */
    struct arena *gap_arena;
    struct definition *gap;     /* to be asked for */
    size_t gap_count, gap_next; /* gap_count 0 and gap NULL: no gap is looked after */
    struct live_horizon gap_known;
    bool gap_is_first;

    enum live_round round;
    bool is_told_of;                /* something has changed since the last round */
    bool was_clean, round_is_clean; /* no sessions of former generations: when last asked; now and then */
    uint64_t round_heard;           /* of the news */
    int64_t round_ms;               /* monotonic: when it was last asked */
    uint64_t round_number;
    struct live_horizon round_known;
    int64_t round_next;
    uint64_t round_busy[SLOTS_WORDS]; /* entries whose commit may not have been told */
};

/* Finds or makes it; NULL: the names are too long.  It is none of the segment's until live_namespace_enter.
 */
struct live_namespace *live_namespace_get(struct live *live, struct bytes code, struct bytes database);
/* The rules have shown that it is a namespace: it gets its number.  False: the segment has no room. */
MUST_USE bool live_namespace_enter(struct live_namespace *ns);
void live_namespace_destroy(struct live_namespace *ns);
/* Goes on with whatever can be gone on with. */
void live_namespace_go_on(struct live_namespace *ns);
/* Something was missed: the database will be asked. */
void live_namespace_miss(struct live_namespace *ns);
/* A notification of the database; its stamps are moved. */
void live_namespace_notice(struct live_namespace *ns, struct bytes payload);
/* Nothing waits any more: all that was heard counts as told. */
void live_news_clear(struct live_namespace *ns);
/* Now and then. */
void live_namespace_tick(struct live_namespace *ns, int64_t now_ms);
/* A document was committed; version 0: unknown. */
void live_namespace_hear(struct live_namespace *ns, struct bytes class, struct bytes id, int64_t version);
/* A listener waits for a horizon; waits no more; the next of them, NULL: none. */
void live_namespace_queue(struct live_namespace *ns, struct live_listener *listener);
void live_namespace_forget(struct live_namespace *ns, struct live_listener *listener);
struct live_listener *live_namespace_take_waiting(struct live_namespace *ns);

/* --- what is asked: is there something; sends it; takes the answer; takes a fault of which the connection
 * has not died (NULL: it is begun anew) --- */
struct live_asking {
    bool (*is_due)(struct live_namespace *ns);
    MUST_USE enum fault (*ask)(struct live_namespace *ns);
    void (*take)(struct live_namespace *ns);
    void (*failed)(struct live_namespace *ns, enum fault fault);
};
enum live_statement {
#define STATEMENT(word, label, count, text) LIVE_STATEMENT_##word,
#include "live/live_statement_table.h"
#undef STATEMENT
    LIVE_STATEMENTS
};
extern const struct pg_statement live_statements[LIVE_STATEMENTS];
enum { LIVE_ROW_OF_ALL, LIVE_ROW_OF_DOCUMENT, LIVE_ROW_OF_COLLECTION }; /* kinds of rows of answers */
struct bytes live_number_text(struct arena *arena, int64_t number);
extern const struct live_asking live_asks_listen, live_asks_secret, live_asks_rules, live_asks_news,
    live_asks_open, live_asks_gap, live_asks_round;
/* The question of a listener has failed. */
void live_open_failed(struct live_namespace *ns, enum fault fault);
/* The horizon of an answer, and the first number that no transaction had yet. */
MUST_USE bool live_read_horizon(const struct pg_result *result, struct live_horizon *known_r,
                                int64_t *next_r);
/* Is what changed since then remembered? */
MUST_USE bool live_is_within_reach(const struct live_horizon *since, const struct live_horizon *known,
                                   int64_t next);
/* All who listen have been told of everything below. */
void live_advance(struct live_namespace *ns, const struct live_horizon *known);
/* Goes on with a round as far as can be; true: look again in some milliseconds. */
bool live_round_go_on(struct live_namespace *ns);
/* The echo of a round has come. */
void live_round_hear(struct live_namespace *ns, struct bytes payload);

/* --- rules --- */
/* An answer that was asked for will not come. */
void live_rules_forget(struct live *live);
/* All are to be read again. */
void live_rules_doubt(struct live *live);
void live_rules_doubt_one(struct live *live, struct bytes code);
/* Those who wait for rules cannot have them. */
void live_rules_failed(struct live *live);
/* The rules are known: the listener is admitted, or is answered and is no more. */
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
    struct live_listener *first_kept, *last_kept; /* the first is the next to be kept alive */
    size_t listener_count, memory, connections_most;
    struct live_shares *shares;
    uint64_t nonce; /* of this process */
    bool is_leaving;
    struct arena *arena; /* of one thing at a time */
    struct builder text, key;
};

/* Takes everything that workers have told. */
void live_hear(struct live *live);
/* Rounds are gone on with in some milliseconds. */
void live_look_soon(struct live *live);
/* A request of the door. */
void live_serve(void *context, struct exchange *exchange);

#endif
