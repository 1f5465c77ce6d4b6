/* cluster_share: what namespaces and callers have of the memory of a host.
 *
 * A record counts for its namespace, and, if a caller with terms has stored its content, for that caller and
 * for the rule that has allowed it.  The host that serves a key holds an insertion, and a content that grows,
 * to the limits; copies are always taken, so that no record has fewer of them than the terms say.  What a
 * share takes itself counts for it, too: many callers with a record each get no more than one with many. */
#ifndef STAMPD_CLUSTER_CLUSTER_SHARE_H
#define STAMPD_CLUSTER_CLUSTER_SHARE_H

#include "base/base.h"

/* Digests; `rule` and `caller` 0: the record counts for the namespace alone. */
struct cluster_payer {
    uint64_t space, rule, caller;
};

/* Of one host.  0: there is none. */
struct cluster_limits {
    uint64_t space_bytes, space_records;
    uint64_t payers_bytes; /* of all callers of the namespace together */
    uint64_t rule_bytes, rule_records;
    uint64_t caller_bytes, caller_records;
};

enum cluster_share_verdict { CLUSTER_SHARE_FREE, CLUSTER_SHARE_OF_SPACE, CLUSTER_SHARE_OF_CALLER };

struct cluster_share;
struct cluster_shares;

struct cluster_shares *cluster_share_create(void) MUST_USE;
void cluster_share_destroy(struct cluster_shares *shares);
/* Bytes of the shares themselves. */
size_t cluster_share_memory(const struct cluster_shares *shares);

/* The share of the payer, with one record more that belongs to it until cluster_share_leave. */
struct cluster_share *cluster_share_join(struct cluster_shares *shares,
                                         const struct cluster_payer *payer) MUST_USE;
void cluster_share_leave(struct cluster_shares *shares, struct cluster_share *share);
void cluster_share_charge(struct cluster_share *share, int64_t bytes, int records);
/* The digests of the payer. */
void cluster_share_read(const struct cluster_share *share, struct cluster_payer *payer_r);

/* May a record of `before` bytes, in the share `present` (NULL, 0: there is none), become one of `after`
 * bytes that counts for the payer?  What makes a share smaller is always possible. */
enum cluster_share_verdict cluster_share_judge(const struct cluster_shares *shares,
                                               const struct cluster_payer *payer,
                                               const struct cluster_limits *limits,
                                               const struct cluster_share *present, size_t before,
                                               size_t after);

#endif
