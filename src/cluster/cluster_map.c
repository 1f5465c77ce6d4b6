/* cluster_map: members sorted by address, so that each group of each level is a range. */
#include "cluster/cluster_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/coding/hash.h"
#include "base/memory.h"

struct map_place {
    struct cluster_member member;
    uint64_t paths[CLUSTER_LEVELS_MOST]; /* digest of the address down to this level */
    uint32_t ends[CLUSTER_LEVELS_MOST];  /* where the group of this level ends */
};

struct number {
    uint32_t number, at;
};

struct cluster_map {
    uint64_t version;
    unsigned depth;
    uint32_t count, users;
    struct number *numbers; /* sorted */
    struct map_place places[];
};

static int compare_places(const void *a, const void *b)
{
    const struct cluster_member *left = &((const struct map_place *)a)->member;
    const struct cluster_member *right = &((const struct map_place *)b)->member;
    for (unsigned level = 0; level < CLUSTER_LEVELS_MOST; level++)
        if (left->groups[level] != right->groups[level])
            return left->groups[level] < right->groups[level] ? -1 : 1;
    return 0;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t left = ((const struct number *)a)->number, right = ((const struct number *)b)->number;
    return (left > right) - (left < right);
}

struct cluster_map *cluster_map_create(const struct cluster_member *members, uint32_t count, unsigned depth,
                                       uint64_t version)
{
    assert(depth > 0 && depth <= CLUSTER_LEVELS_MOST);
    struct cluster_map *map =
        memory_zeroed(1, sizeof *map + count * sizeof *map->places, "map of the cluster");
    *map = (struct cluster_map){.version = version, .depth = depth, .count = count, .users = 1};
    map->numbers = memory_zeroed(count + 1, sizeof *map->numbers, "map of the cluster");
    for (uint32_t at = 0; at < count; at++) {
        map->places[at].member = members[at];
        for (unsigned level = depth; level < CLUSTER_LEVELS_MOST; level++)
            map->places[at].member.groups[level] = 0;
    }
    qsort(map->places, count, sizeof *map->places, compare_places);
    for (uint32_t at = count; at-- > 0;) {
        struct map_place *place = &map->places[at];
        const struct map_place *next = at + 1 < count ? place + 1 : NULL;
        uint64_t path = 0;
        map->numbers[at] = (struct number){place->member.number, at};
        for (unsigned level = 0; level < depth; level++) {
            place->paths[level] = path = hash_mix(path + hash_mix(place->member.groups[level]) + level);
            place->ends[level] = at + 1;
        }
        for (unsigned level = 0; next && level < depth; level++) {
            if (place->member.groups[level] != next->member.groups[level])
                break;
            place->ends[level] = next->ends[level];
        }
    }
    qsort(map->numbers, count, sizeof *map->numbers, compare_numbers);
    return map;
}

struct cluster_map *cluster_map_share(struct cluster_map *map)
{
    map->users++;
    return map;
}

void cluster_map_destroy(struct cluster_map *map)
{
    if (!map || --map->users > 0)
        return;
    free(map->numbers);
    free(map);
}

uint64_t cluster_map_version(const struct cluster_map *map)
{
    return map->version;
}

unsigned cluster_map_depth(const struct cluster_map *map)
{
    return map->depth;
}

uint32_t cluster_map_count(const struct cluster_map *map)
{
    return map->count;
}

const struct cluster_member *cluster_map_member(const struct cluster_map *map, uint32_t at)
{
    assert(at < map->count);
    return &map->places[at].member;
}

int64_t cluster_map_find(const struct cluster_map *map, uint32_t number)
{
    struct number sought = {number, 0};
    const struct number *found =
        bsearch(&sought, map->numbers, map->count, sizeof *map->numbers, compare_numbers);
    return found ? (int64_t)found->at : -1;
}

/* The element of this level in the distance between the key and the group of the host. */
static uint64_t distance(const struct cluster_map *map, uint64_t digest, unsigned level, uint32_t at)
{
    return hash_mix(digest ^ map->places[at].paths[level]);
}

bool cluster_map_is_near(const struct cluster_map *map, unsigned level, uint32_t a, uint32_t b)
{
    assert(level > 0 && level <= map->depth);
    unsigned same = map->depth - level;
    return same == 0 || map->places[a].paths[same - 1] == map->places[b].paths[same - 1];
}

bool cluster_map_is_nearer(const struct cluster_map *map, uint64_t digest, uint32_t a, uint32_t b)
{
    for (unsigned level = 0; level < map->depth; level++) {
        if (map->places[a].paths[level] == map->places[b].paths[level])
            continue;
        uint64_t left = distance(map, digest, level, a), right = distance(map, digest, level, b);
        return left != right ? left < right : a < b;
    }
    return false;
}

void cluster_map_begin(struct cluster_walk *walk, const struct cluster_map *map, uint64_t digest,
                       unsigned level, uint32_t self)
{
    assert(level > 0 && level <= map->depth);
    *walk = (struct cluster_walk){.map = map, .digest = digest, .top = map->depth - level};
    walk->level = walk->top;
    walk->to[walk->top] = map->count;
    if (walk->top == 0)
        return;
    assert(self < map->count);
    uint32_t end = map->places[self].ends[walk->top - 1], from = self;
    while (from > 0 && map->places[from - 1].ends[walk->top - 1] == end)
        from--;
    walk->from[walk->top] = from;
    walk->to[walk->top] = end;
}

/* Enters the next part of the present group: the nearest one that is farther than the last. */
static bool enter_part(struct cluster_walk *walk)
{
    const struct cluster_map *map = walk->map;
    unsigned level = walk->level;
    bool is_found = false;
    uint64_t nearest = 0;
    uint32_t part = 0;
    for (uint32_t at = walk->from[level]; at < walk->to[level]; at = map->places[at].ends[level]) {
        uint64_t far = distance(map, walk->digest, level, at);
        if (walk->has_begun[level] &&
            (far < walk->distance[level] || (far == walk->distance[level] && at <= walk->part[level])))
            continue;
        if (is_found && far >= nearest)
            continue;
        is_found = true;
        nearest = far;
        part = at;
    }
    walk->has_begun[level] = is_found;
    walk->distance[level] = nearest;
    walk->part[level] = part;
    return is_found;
}

int64_t cluster_map_next(struct cluster_walk *walk)
{
    const struct cluster_map *map = walk->map;
    for (;;) {
        unsigned level = walk->level;
        if (!enter_part(walk)) {
            if (level == walk->top) {
                walk->to[level] = walk->from[level]; /* it stays at its end */
                return -1;
            }
            walk->level--;
        } else if (level + 1 < map->depth) {
            walk->level++;
            walk->from[level + 1] = walk->part[level];
            walk->to[level + 1] = map->places[walk->part[level]].ends[level];
            walk->has_begun[level + 1] = false;
        } else if (!map->places[walk->part[level]].member.is_guest) {
            return walk->part[level];
        }
    }
}
