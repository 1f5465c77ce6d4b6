/* live_audience_private: audiences and listeners, for live_audience.c, live_listener.c, live_admission.c,
 * live_accounts.c, live_records.c and live_ruled.c only. */
#ifndef STAMPD_LIVE_LIVE_AUDIENCE_PRIVATE_H
#define STAMPD_LIVE_LIVE_AUDIENCE_PRIVATE_H

#include "edge/events.h"
#include "edge/exchange.h"
#include "live/live_audience.h"
#include "live/access/live_caller.h"
#include "live/live_searches.h"
#include "model/quotas.h"
#include "segment/namespaces.h"

enum { LIVE_SECRET_BYTES = 129 };

struct live_listener;
struct live_opening;

struct live_audiences {
    const struct settings *settings;
    struct subscriber *subscriber;
    struct live_shares *shares;
    struct live_records *records;
    struct live_searches *searches;
    struct live_shares *quota_shares; /* by quota_number_key: of an address, an account, a namespace */
    struct live_listener *first_kept, *last_kept; /* the first one's keep-alive is due next */
    size_t count, memory;
    struct arena *arena; /* scratch memory of one step */
    struct builder text;
};

/* For live_follow.c. */
enum live_follow_step {
    LIVE_FOLLOW_BEGINS,
    LIVE_FOLLOW_DECLARES,
    LIVE_FOLLOW_DECLARES_AGAIN,
    LIVE_FOLLOW_ENDS
};
struct live_follow {
    enum live_follow_step step;
    int64_t mark; /* the rules that it was tried with */
    bool is_settled, is_followed;
    int64_t retry_ms;
};

/* For live_records.c: where a namespace stands in the ring of changes, while listeners name its records. */
struct live_records_place {
    size_t count; /* of these listeners */
    struct live_index *index;
    uint32_t *prefix_sizes; /* how many definitions have a prefix of this size */
    struct live_ranges *ranges;
    uint64_t position;
    bool is_known; /* the position; if not, the records were busy */
    struct live_audience *next;
};

struct live_audience {
    struct live_audiences *all;
    const char *code, *database;
    const struct live_access *access;
    int number;
    struct segment *segment; /* NULL: not entered */
    char secret[LIVE_SECRET_BYTES];
    struct live_index *index, *ruled_index;
    struct live_listener *listeners, *first_waiting, *last_waiting;
    struct live_listener *queried; /* whose changes are being queried; NULL: none, or it has disconnected */
    size_t count, admitted_count, ruled_count;
    size_t doubted_count; /* listeners whose account is to be loaded */
    size_t memory;
    uint64_t serials; /* assigned to listeners */
    uint64_t judged;  /* of the changes of documents that were held */
    struct live_horizon known;
    struct live_follow follow;
    struct live_records_place records;
    struct live_search_queue searches;
};

enum live_state { LIVE_WAITS_FOR_ACCESS, LIVE_WAITS_FOR_ACCOUNT, LIVE_WAITS_FOR_HORIZON, LIVE_OPEN };

/* Is what is known of the caller's account the newest? */
enum live_trust { LIVE_DOUBTED, LIVE_REQUESTED, LIVE_TRUSTED };

struct live_listener {
    struct live_feed feed;          /* first: a listener is found by its feed */
    struct live_feed records;       /* its definitions of records */
    struct live_searcher *searcher; /* NULL: it follows no search */
    struct live_audience *audience;
    struct exchange *exchange;
    struct live_opening *opening; /* NULL: it is open */
    enum live_state state;
    uint64_t serial;
    bool is_administrator;
    bool is_ruled;              /* its events are judged, and it is in the ruled index */
    struct live_caller *caller; /* NULL: no account */
    enum live_trust trust;      /* in the caller */
    size_t place;               /* of its account in the query, while LIVE_REQUESTED */
    uint64_t turn;              /* of the rules that it was judged by */
    uint64_t configured;        /* the same of the configuration, for records */
    uint64_t shown;             /* the same of what it was sent about the configuration; 0: nothing */
    int64_t sight, sight_mark;  /* in its ids, under the rules with this mark; 0: to be computed */
    uint64_t awaited;           /* it has no id until so many changes have been judged */
    bool must_reset;            /* a reset is to be sent: anything may have changed */
    bool has_sent;              /* an event was sent since its last id, or it has no id yet */
    struct live_horizon known;  /* of its last id; horizon 0: none */
    uint64_t session;           /* in the segment; 0: none given */
    struct live_share *share;   /* of its client; NULL: none */
    struct live_share *quota_shares[QUOTA_SUBJECTS]; /* once it is admitted; NULL: none */
    size_t bytes;                                    /* of memory, about */
    int64_t kept_ms;                                 /* monotonic: last keep-alive */
    struct live_listener *next, *previous;           /* in the namespace */
    struct live_listener *next_kept, *former_kept;   /* in the order of keep-alive */
    struct live_listener *next_waiting;              /* for a horizon */
};

static inline struct live_listener *live_audience_listener_of_records(struct live_feed *feed)
{
    return (struct live_listener *)(void *)((char *)feed - offsetof(struct live_listener, records));
}

/* The listener enters or leaves all lists and counts. */
void live_audience_join(struct live_audience *audience, struct live_listener *listener);
void live_audience_leave(struct live_listener *listener);
/* It has sent its keep-alive: it is the last one now. */
void live_audience_keep(struct live_listener *listener);
/* It moves to the ruled index. */
void live_audience_rule(struct live_listener *listener, const struct definition *definitions, size_t count);
/* Sets its trust, and keeps the count. */
void live_audience_trust(struct live_listener *listener, enum live_trust trust);
void live_audience_count_memory(struct live_listener *listener, size_t bytes);
/* The queue of listeners that wait for a horizon: add, take the next (NULL: none). */
void live_audience_queue(struct live_listener *listener);
struct live_listener *live_audience_take_waiting(struct live_audience *audience);

#endif
