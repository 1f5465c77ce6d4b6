/* cluster_map: the hosts that take part, in an order for each key.
 *
 * A host has an address of levels, the widest first (site, rack, host).  The place of a key is a tuple with
 * an element for each level, and the distance of a host from it is such a tuple too: at each level a number
 * that depends on the key and on the group that the host belongs to there.  The widest level decides first.
 * So all hosts of the nearest site come before those of the next one, and a host that joins or leaves moves
 * only the keys of which it is one of the first.
 *
 * A map never changes: another set of hosts is another map with a greater version. */
#ifndef STAMPD_CLUSTER_CLUSTER_MAP_H
#define STAMPD_CLUSTER_CLUSTER_MAP_H

#include "base/base.h"

enum { CLUSTER_LEVELS_MOST = 8 };

struct cluster_member {
    uint32_t number; /* not 0; a host that starts again has another one */
    bool is_guest;   /* it asks only, is in no order, and passes on what it has: also one that leaves */
    uint64_t joined; /* the version of the first map that names it */
    uint8_t alone;   /* bit l - 1: of keys with level l, what hosts of its group had may be elsewhere */
    uint64_t groups[CLUSTER_LEVELS_MOST]; /* digests of the names in its address, the widest level first */
};

struct cluster_map;

/* Copies the members.  `depth`: how many levels the addresses have, from 1 to CLUSTER_LEVELS_MOST; no two
 * members have the same address. */
struct cluster_map *cluster_map_create(const struct cluster_member *members, uint32_t count, unsigned depth,
                                       uint64_t version) MUST_USE;
/* One user more: a map is freed when its last user has destroyed it. */
struct cluster_map *cluster_map_share(struct cluster_map *map);
void cluster_map_destroy(struct cluster_map *map);

uint64_t cluster_map_version(const struct cluster_map *map);
unsigned cluster_map_depth(const struct cluster_map *map);
uint32_t cluster_map_count(const struct cluster_map *map);
/* By its place in the map, below the count.  The members are in the order of their addresses. */
const struct cluster_member *cluster_map_member(const struct cluster_map *map, uint32_t at);
/* The place of the member with this number; -1: there is none. */
int64_t cluster_map_find(const struct cluster_map *map, uint32_t number);

/* Do both, places in the map, differ in the last so many levels only? */
bool cluster_map_is_near(const struct cluster_map *map, unsigned level, uint32_t a, uint32_t b);
/* Is host `a` nearer to the key than `b`, another one?  Both are places in the map. */
bool cluster_map_is_nearer(const struct cluster_map *map, uint64_t digest, uint32_t a, uint32_t b);

/* A walk over hosts, from the nearest one on.  It costs one number for each group beside those that it
 * passes: with addresses of three levels some dozens for a thousand hosts. */
struct cluster_walk {
    const struct cluster_map *map;
    uint64_t digest;
    unsigned top; /* the level at which the hosts of this walk differ first */
    unsigned level;
    uint32_t from[CLUSTER_LEVELS_MOST], to[CLUSTER_LEVELS_MOST]; /* the group whose parts are walked over */
    uint64_t distance[CLUSTER_LEVELS_MOST];                      /* of the part that it is in */
    uint32_t part[CLUSTER_LEVELS_MOST];
    bool has_begun[CLUSTER_LEVELS_MOST];
};

/* `level`: the key is looked for among the hosts that differ from `self` in the last so many levels only; the
 * depth of the map means all of them. */
void cluster_map_begin(struct cluster_walk *walk, const struct cluster_map *map, uint64_t digest,
                       unsigned level, uint32_t self);
/* The next host that is no guest; -1: that was the last one. */
int64_t cluster_map_next(struct cluster_walk *walk);

#endif
