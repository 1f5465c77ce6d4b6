/* cluster_private: what the parts of a host share: cluster.c is the host, cluster_host.c what it knows of the
 * others, cluster_ask.c asks others, cluster_serve.c answers them, cluster_copy.c passes copies on. */
#ifndef STAMPD_CLUSTER_CLUSTER_PRIVATE_H
#define STAMPD_CLUSTER_CLUSTER_PRIVATE_H

#include "cluster/cluster.h"

/* A clock of another host: it showed `theirs_ms` at or before `mine_ms` of this one. */
struct cluster_peer {
    int64_t theirs_ms, mine_ms;
    int64_t alone_ms; /* since then this host knows of the bits below */
    uint8_t alone;    /* of the last map */
};

/* A question of this host. */
struct cluster_question {
    uint64_t id; /* 0: free */
    uint64_t cookie;
    struct cluster_request request; /* its texts are own memory */
    struct cluster_walk walk;
    uint32_t space; /* place of its namespace among cluster_asks */
    uint32_t to;
    bool has_time;         /* `to` was sent when the question ends */
    bool is_of_former_map; /* the walk is */
    bool is_ambiguous;     /* a change that a silent host may have made */
    uint32_t silent[CLUSTER_SILENT_MOST];
    unsigned silent_count, asked, full, doubtful, not_exhaustive;
    struct cluster_stamp known;           /* the latest one of the hosts that have refused */
    int64_t ends_ms, silent_ms, pause_ms; /* pause_ms: starts again then; 0: it waits for `to` */
};

/* Open questions of the namespaces whose digests share a place: none of them has all room of the others. */
enum { CLUSTER_SPACES = 256, CLUSTER_SPACE_PART = 2 };
struct cluster_asks {
    uint32_t count;
    size_t bytes;
};

struct cluster_wait {
    uint32_t number;
    bool is_nearer, is_again;
};

/* Copies of one change that are under way. */
struct cluster_round {
    uint64_t id; /* 0: free */
    uint64_t digest;
    unsigned level;
    struct bytes key; /* own memory */
    bool is_asked;    /* by this question of this host */
    uint32_t asker;
    uint64_t question;
    struct cluster_walk walk;
    struct cluster_wait waits[CLUSTER_COPIES_MOST + 1];
    unsigned wait_count, holders, copies, full;
    bool has_passed_self;
    bool is_check;  /* is the copy of this host still of use?  Nobody stores it */
    bool is_unsure; /* of a sweep, or of a change past silent hosts: others may have a later change */
    uint16_t reach;
    uint32_t nearer; /* the nearest host before this one that has accepted; 0: none */
    int64_t ends_ms;
};

struct cluster_host {
    struct cluster_settings settings;
    struct cluster_hooks hooks;
    struct cluster_time time;
    struct cluster_table *table;
    struct cluster_map *map; /* NULL: none yet */
    uint32_t number;         /* of this host */
    int64_t self;            /* its place in the map; -1: it is not there */
    struct cluster_peer *peers;
    struct cluster_question *questions;
    struct cluster_round *rounds;
    struct cluster_asks asks, asks_of[CLUSTER_SPACES];
    uint64_t sent, received, missing, missing_before;
    uint64_t last_id; /* an id is a multiple of the number of places, and its place */
    /* What it can know. */
    uint64_t joined;
    int64_t sure_until_ms, doubt_until_ms, default_until_ms;
    int64_t level_until_ms[CLUSTER_LEVELS_MOST + 1]; /* until then nobody knows what is absent of keys with
                                                      * this level */
    int64_t settles_ms; /* the time to live has passed since all knew of this host; INT64_MAX: not all do */
    bool is_settled;    /* all have passed on what this host should have */
    /* The sweep: passes on what the map of `pass` places at other hosts than the one of `swept`. */
    struct cluster_map *swept_map, *pass_map; /* NULL: none */
    uint64_t swept, bucket;
    uint64_t swept_by_all; /* of the last view */
    uint64_t left;         /* since this version the host is in no order; 0: it is in it */
    uint32_t pass_rounds;  /* under way */
    int64_t pause_ms;      /* nothing is to be moved: it looks again then */
    bool is_again;         /* this pass is for what is owed only */
    bool has_owed;
    bool is_short, has_short; /* since a pass began, and of the last one: a host has a record for which others
                               * had no room */
};

/* Of cluster_host.c. */
uint64_t cluster_digest(const struct cluster_host *cluster, unsigned level, struct bytes key);
/* The digest of the key's namespace. */
uint64_t cluster_space(const struct cluster_host *cluster, struct bytes key);
/* Whom the record counts for: `payer` without its namespace. */
void cluster_pay(struct cluster_host *cluster, struct cluster_entry *entry,
                 const struct cluster_payer *payer);
/* A copy in memory of its own, which `free` returns; never NULL. */
struct bytes cluster_copy_text(struct bytes text);
/* Fills in sender, version and time. */
void cluster_send(struct cluster_host *cluster, struct cluster_message *message);
/* A time of this host by the clock of another one, never later than it is; 0: that clock is not known. */
int64_t cluster_time_of(const struct cluster_host *cluster, uint32_t number, int64_t ms);
/* Is it in the order?  A guest is not: what it served, the next host does. */
bool cluster_is_serving(const struct cluster_host *cluster, uint32_t number);
/* Is its map the one that is agreed on, and no more lost, of keys with this level, than there are copies? */
bool cluster_is_sure(const struct cluster_host *cluster, unsigned level);
/* Does this host know that keys with this level are absent of which it knows nothing? */
bool cluster_is_exhaustive(const struct cluster_host *cluster, unsigned level);
/* Of keys without a level. */
unsigned cluster_depth(const struct cluster_host *cluster);
/* Remembers that the key may be farther away, at least until then. */
void cluster_doubt(struct cluster_host *cluster, unsigned level, struct bytes key, uint64_t digest,
                   int64_t end_ms, bool is_full);

/* How long copies of this change of the key and of earlier ones may live at other hosts, whose clocks read
 * the same end a little later. */
int64_t cluster_past(const struct cluster_host *cluster, const struct cluster_entry *entry);

/* Of cluster_serve.c. */
void cluster_serve(struct cluster_host *cluster, const struct cluster_message *message);

/* Of cluster_ask.c. */
void cluster_ask_restart(struct cluster_host *cluster);
void cluster_ask_heed(struct cluster_host *cluster, const struct cluster_message *message);
void cluster_ask_tick(struct cluster_host *cluster);

/* Of cluster_copy.c. */
bool cluster_copy_is_free(const struct cluster_host *cluster);
/* Copies the last change of this key; the question, NULL: none, is answered when that is done. */
void cluster_copy_begin(struct cluster_host *cluster, struct cluster_entry *entry,
                        const struct cluster_message *question);
void cluster_copy_restart(struct cluster_host *cluster);
void cluster_copy_accept(struct cluster_host *cluster, const struct cluster_message *message);
void cluster_copy_heed(struct cluster_host *cluster, const struct cluster_message *message);
void cluster_copy_tick(struct cluster_host *cluster);

#endif
