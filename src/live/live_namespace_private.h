/* live_namespace_private: a namespace, for live_namespace.c and live_namespace_queries.c only. */
#ifndef STAMPD_LIVE_LIVE_NAMESPACE_PRIVATE_H
#define STAMPD_LIVE_LIVE_NAMESPACE_PRIVATE_H

#include "live/live_catch_up.h"
#include "live/access/live_follow.h"
#include "live/live_link.h"
#include "live/live_namespace.h"
#include "live/live_news.h"
#include "live/live_round.h"
#include "live/live_statement.h"
#include "live/access/live_access.h"
#include "live/access/live_accounts.h"
#include "live/access/live_ruled.h"
#include "segment/namespaces.h"

enum { LIVE_CODE_BYTES = 17 };

struct live_namespaces {
    struct live_namespaces_parts parts;
    struct live_namespace *first, *z;
    struct live_namespace *asked; /* whose access z is queried about */
    uint64_t nonce;               /* of this process */
};

struct live_namespace {
    struct live_namespace *next;
    struct live_namespaces *all;
    char code[LIVE_CODE_BYTES], database[NAMESPACES_DATABASE_BYTES + 1];
    bool is_listening; /* LISTEN has succeeded */
    bool has_keys;     /* those of the database are known; none: no ids are encrypted */
    struct data_keys keys;
    struct stored_ids ids;
    struct live_access *access;
    struct live_audience *audience;
    struct live_news *news;
    struct live_ruled *ruled;
    struct live_snapshot *snapshot;
    struct live_catch_up *catch_up;
    struct live_round *round;
    struct live_link_owner owner;
    struct live_link *link;
};

/* The queries of the link; their context is the namespace.  The first ones precede all others. */
enum { LIVE_QUERIES = 13, LIVE_FIRST_QUERIES = 3 };
extern const struct live_query *const live_namespace_queries[LIVE_QUERIES];

#endif
