/* cluster: records with an end that several hosts hold together, each of which knows what it does not know.
 *
 * One struct cluster_host is one host.  It has no socket, no clock and no thread: the caller passes it
 * messages, the time and the map of hosts that all agree on (of z), and it returns messages and answers.  So
 * the same code serves between machines and in a simulation of ten thousand of them.
 *
 * What it is to promise (the page below says where it does not yet), if the promises of struct cluster_view
 * hold, whatever messages are late, lost or repeated, and whatever wall clocks do:
 *
 * - NOT_FOUND and NOT_FREE are true.  A host that cannot know passes the request on; where nobody can, the
 *   answer is UNKNOWN.
 * - OK to a change means that it is on as many hosts as there shall be copies, or on all that have room; the
 *   death of as many hosts as a record has copies loses nothing.
 * - No record is returned after its end.  It may end earlier, by the delay of a message for each host that it
 *   was passed on to.
 * - A record is dropped before its end only when the hosts that shall have it have it.
 *
 * doc/explanation/records-on-several-hosts.md says why. */
#ifndef STAMPD_CLUSTER_CLUSTER_H
#define STAMPD_CLUSTER_CLUSTER_H

#include "base/coding/siphash.h"
#include "cluster/cluster_map.h"
#include "cluster/cluster_table.h"

enum { CLUSTER_KEY_MOST = 1024, CLUSTER_COPIES_MOST = 7, CLUSTER_SILENT_MOST = 8 };

enum cluster_deed {
    CLUSTER_READ,
    CLUSTER_INSERT, /* where there is no record */
    CLUSTER_CHANGE, /* another content and end, where there is one */
    CLUSTER_TOUCH,  /* another end */
    CLUSTER_REMOVE,
    CLUSTER_DEEDS
};

enum cluster_outcome {
    CLUSTER_OK,
    CLUSTER_NOT_FOUND,
    CLUSTER_NOT_FREE, /* INSERT: with the record that is there */
    CLUSTER_OUT_OF_MEMORY,
    CLUSTER_NO_PARTICIPANTS,
    CLUSTER_OUT_OF_SHARE, /* the caller, or all callers of its rule, have what they may: OUT_OF_MEMORY is that
                           * of the namespace, too */
    CLUSTER_OTHER_STAMP,  /* the record has another stamp than the request expects */
    CLUSTER_UNKNOWN,      /* nobody that answers can know; a change may have happened, or happen later */
    CLUSTER_OUTCOMES,
    /* Between hosts only. */
    CLUSTER_NOT_EXHAUSTIVE = CLUSTER_OUTCOMES, /* "I do not have it, and cannot know whether it is" */
    CLUSTER_KEY_DOUBTFUL,                      /* the same, of this key alone */
    CLUSTER_FULL,                              /* "I do not have it, and have no room" */
    CLUSTER_REDO,                              /* "start again at the nearest host" */
    CLUSTER_OLDER,                             /* "I have a later change than this copy": it is beside it */
    CLUSTER_NO_TIME /* "I do not know when this ends by my clock": now the sender can compute that */
};

enum cluster_message_kind { CLUSTER_ASK, CLUSTER_ANSWER, CLUSTER_COPY, CLUSTER_COPIED };

/* Texts are valid during the call that passes the message. */
struct cluster_message {
    enum cluster_message_kind kind;
    uint32_t from, to; /* numbers of members */
    uint64_t version;  /* of the sender's map */
    uint64_t id;       /* of the question or the copy, returned with its answer */
    int64_t sent_ms;   /* by the sender's clock */
    unsigned level;    /* of the key */
    struct bytes key, content;
    enum cluster_deed deed;       /* ASK */
    enum cluster_outcome outcome; /* ANSWER, COPIED */
    int64_t ttl_ms;               /* ASK: of what it stores or touches.  ANSWER: what is left */
    int64_t end_ms;               /* by the receiver's clock.  ASK: of the question.  COPY: of the record.
                                   * 0: the sender does not know that clock */
    int64_t past_ms;              /* COPY, COPIED with OLDER: so long copies of earlier changes may live */
    struct cluster_stamp stamp;   /* ASK: the one that is expected, number 0: any */
    struct cluster_stamp known; /* ASK: of the latest change that nearer hosts have, which cannot serve it */
    uint16_t reach;             /* COPY: see struct cluster_entry */
    bool is_unsure;  /* COPY: others may have a later change.  COPIED: the receiver has it, and does not serve
                        it yet */
    bool is_check;   /* COPY: not to be stored; FULL: the receiver does not have it */
    bool is_removed; /* COPY, COPIED with OLDER: there is no record any more */
    struct cluster_payer payer;           /* ASK: of what it stores; COPY, COPIED with OLDER: of the record */
    struct cluster_limits limits;         /* ASK: of the payer */
    unsigned copies;                      /* ANSWER: see struct cluster_answer */
    bool is_sure;                         /* ANSWER: the host was in the map that is agreed on */
    uint32_t silent[CLUSTER_SILENT_MOST]; /* ASK: nearer hosts that did not answer */
    unsigned silent_count;
};

struct cluster_request {
    enum cluster_deed deed;
    unsigned level; /* of the key, from 1 to the depth of the map: see cluster_map_begin */
    struct bytes key, content;
    int64_t ttl_ms;             /* INSERT, CHANGE, TOUCH: above 0, at most that of the settings */
    struct cluster_stamp stamp; /* number 0: any */
    struct cluster_payer
        payer; /* INSERT, CHANGE: rule and caller; each host knows the namespace by the key */
    struct cluster_limits limits; /* of these two; the host's own are those of the namespace */
};

struct cluster_answer {
    enum cluster_outcome outcome;
    struct bytes content; /* valid during the call */
    int64_t ttl_ms;       /* what is left */
    struct cluster_stamp stamp;
    bool is_sure;    /* of OK to READ: if not, hosts that this one cannot reach may have a later change */
    unsigned copies; /* of OK to a change: so many other hosts have it; fewer than in the settings if others
                      * have no room, or do not take part */
    unsigned hosts;  /* that were asked */
};

struct cluster_hooks {
    void *context;
    /* Sends a message, also one to this host itself: it comes back by cluster_receive, after the present
     * call.  What cannot be sent may be dropped. */
    void (*send)(void *context, const struct cluster_message *message);
    /* The answer to cluster_ask. */
    void (*answer)(void *context, uint64_t cookie, const struct cluster_answer *answer);
};

/* All hosts have the same, but for the bounds. */
struct cluster_settings {
    struct cluster_bounds bounds;
    struct siphash_key
        places; /* of the digests of keys: no stranger can choose keys that are near one host */
    int64_t ttl_most_ms;
    int64_t request_ms;                /* after which a question ends with UNKNOWN */
    int64_t silence_ms;                /* after which a host that does not answer is passed over */
    size_t (*space)(struct bytes key); /* so many first bytes of a key name its namespace; NULL: nothing
                                        * counts for anybody */
    struct cluster_limits limits;      /* of a namespace on this host */
    size_t asks_bytes;                 /* keys and contents of open questions; 0: not limited */
    unsigned copies;                   /* beside the record itself, at most CLUSTER_COPIES_MOST */
    uint32_t asks_most, rounds_most;   /* questions, and changes that are being copied, at the same time */
    uint32_t sweep_entries;            /* keys that a tick looks at, to pass on what others shall have */
};

/* What z has agreed on.  It promises: of two maps the later one has the greater version; a host that is not
 * in a map any more has had that map, or its `sure_until_ms` had passed before; a host that starts again has
 * another number; a host has a bit of `alone` in the map that follows the loss of a host of its group, unless
 * another one of the group, which all had passed on to what it should have, is left; and from its first map
 * on, unless the group has such a host, or never had one. */
struct cluster_view {
    struct cluster_map *map; /* of it the host takes a share */
    uint32_t self;           /* number of this host; not in the map: it does not take part */
    uint64_t seen, swept;    /* the least of what all members report (struct cluster_report) */
    int64_t sure_until_ms;   /* by this host's clock */
    int64_t doubt_ms;        /* so long nobody can know what is absent, since more hosts than there are
                              * copies were lost at once, or all that were in the order, or any while a member
                              * was short, or, a lease at a
                              * time, since so many were lost or became guests, until all have swept; 0: not
                              * now */
};

/* What a host reports to z. */
struct cluster_report {
    uint64_t seen;  /* the version of its map */
    uint64_t swept; /* all that it has is where the map of this version wants it */
    bool is_short;  /* a record of it is at fewer hosts than shall have it: others had no room */
    uint8_t
        alone_over; /* bits of its own `alone` (struct cluster_member) that a time to live has passed since */
    bool is_exhaustive; /* it knows of keys that it does not have that they are absent */
    uint64_t records, removed, doubtful,
        absent; /* a host that leaves goes when it has none of the first two */
    size_t record_bytes, key_bytes;
    int64_t unsure_ms; /* until it is exhaustive, 0: it is; -1: until all others have passed on what they
                        * have, and at most one time to live */
    uint64_t missing;  /* records of the last sweep of which a copy is missing */
    uint64_t sent, received; /* messages, also to itself */
};

struct cluster_time {
    int64_t now_ms;  /* of a clock that never goes back, and whose second is a second but for 1 in 4,096 */
    int64_t wall_us; /* of any clock: it only decides between changes that did not know of each other */
};

struct cluster_host;

struct cluster_host *cluster_create(const struct cluster_settings *settings,
                                    const struct cluster_hooks *hooks) MUST_USE;
/* Questions that are open get no answer. */
void cluster_destroy(struct cluster_host *cluster);
void cluster_see(struct cluster_host *cluster, const struct cluster_view *view, struct cluster_time time);
/* False: too many questions are open, of all or of this namespace, or the key or a number is out of its
 * bounds. */
bool cluster_ask(struct cluster_host *cluster, const struct cluster_request *request, uint64_t cookie,
                 struct cluster_time time) MUST_USE;
void cluster_receive(struct cluster_host *cluster, const struct cluster_message *message,
                     struct cluster_time time);
/* To be called a few times in `silence_ms`. */
void cluster_tick(struct cluster_host *cluster, struct cluster_time time);
void cluster_report(struct cluster_host *cluster, struct cluster_report *report_r);

#endif
