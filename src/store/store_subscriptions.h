/* store_subscriptions: subscriptions in PostgreSQL: changed, told, and what the task `push` has to tell of
 * them (doc/subscriptions.md).  What a commit touches is a part of store_commit. */
#ifndef STAMPD_STORE_STORE_SUBSCRIPTIONS_H
#define STAMPD_STORE_STORE_SUBSCRIPTIONS_H

#include "store/store.h"

/* The name of the operation whose tasks wake sessions. */
#define PUSH_OPERATION "push"
enum { PUSH_QUEUE = 3 }; /* unless task_queues says another */

/* Where a session is woken, as browsers give it. */
struct push_address {
    struct bytes endpoint, p256dh, auth; /* NO_BYTES, all three: nowhere */
};

struct subscription {
    int64_t version; /* stamp of its last change */
    int64_t until;   /* minute since 1970 in which it ends */
    struct bytes *definitions;
    size_t count;
    struct push_address push;
    struct bytes context; /* NO_BYTES: none */
    bool is_on_trial;     /* it ends early, unless its session returns in a later minute */
    bool is_vouched;      /* declared with the administrator's key; known behind store_read_subscription */
};

/* `by_session`: the session asks, so it has returned.  `is_there_r` false: there is none, or its life is
 * over. */
MUST_USE enum fault store_read_subscription(struct store *store, int ns, struct arena *arena,
                                            struct bytes session, bool by_session,
                                            struct subscription *subscription_r, bool *is_there_r);

struct subscription_change {
    bool may_create;
    bool is_whole;                    /* the definitions replace those that are there */
    const struct bytes *keys, *texts; /* of definitions to add, no key twice */
    size_t count;
    const struct bytes *drops; /* keys */
    size_t drop_count;
    const struct push_address *push; /* NULL: stays */
    const struct bytes *context;     /* NULL: stays */
    int64_t life;                    /* minutes from now; negative: as many at least */
    uint64_t client;                 /* who asks (call.h); 0: nobody that is counted */
    bool is_vouched;                 /* by the administrator's key */
};
/* At once, outside any commit; saying it twice does no harm.  FAULT_ALIMIT: `limit_r` names the
 * setting. */
MUST_USE enum fault store_change_subscription(struct store *store, int ns, struct arena *arena,
                                              struct bytes session, const struct subscription_change *change,
                                              struct subscription *subscription_r, bool *is_there_r,
                                              const char **limit_r);
MUST_USE enum fault store_drop_subscription(struct store *store, int ns, struct arena *arena,
                                            struct bytes session);

/* --- for the task --- */

struct matched_list {
    int64_t taking;                           /* its number, for store_forget_matched */
    const struct matched_definition *matched; /* versions: of the first commit since it was told last */
    size_t count;
};
/* What is to be told to the session, by a task that is claimed: whoever found it waiting, and did not ask for
 * another, is among it.  The same again until it is forgotten. */
MUST_USE enum fault store_take_matched(struct store *store, int ns, struct arena *arena, struct bytes session,
                                       struct matched_list *list_r);
/* It has been told. */
MUST_USE enum fault store_forget_matched(struct store *store, int ns, struct arena *arena,
                                         struct bytes session, int64_t taking);
/* Nobody is there any more: the session is woken no more, unless it has another address by now
 * (`is_gone_r` false). */
MUST_USE enum fault store_forget_push(struct store *store, int ns, struct arena *arena, struct bytes session,
                                      struct bytes endpoint, bool *is_gone_r);

#endif
