/* fake_sight: stands in for store/collections/store_sight.c: no rules are followed. */
#include <string.h>

#include "store/collections/store_sight.h"

enum fault store_sight_declare(struct store *store, int ns, struct arena *arena, int64_t mark,
                               struct bytes places)
{
    (void)store, (void)ns, (void)arena, (void)mark, (void)places;
    return FAULT_NONE;
}

enum fault store_sight_changes(struct store *store, int ns, const struct store_sight_query *query,
                               struct store_sight_changes *changes_r)
{
    (void)store, (void)ns, (void)query;
    *changes_r = (struct store_sight_changes){0};
    return FAULT_NONE;
}

enum fault store_sight_since(struct store *store, int ns, const struct store_sight_query *query,
                             const struct store_sight_changes *changes, const struct bytes *ids, size_t count,
                             int64_t *since_r)
{
    (void)store, (void)ns, (void)query, (void)changes, (void)ids;
    memset(since_r, 0, count * sizeof *since_r);
    return FAULT_NONE;
}

enum fault store_sight_had(struct store *store, int ns, const struct store_sight_query *query,
                           const struct store_sight_changes *changes, const struct bytes *ids,
                           const int64_t *versions, size_t count, bool *had_r)
{
    (void)store, (void)ns, (void)query, (void)changes, (void)ids, (void)versions;
    memset(had_r, 0, count * sizeof *had_r);
    return FAULT_NONE;
}

enum fault store_sight_written(struct store *store, int ns, const struct store_sight_query *query,
                               const struct bytes *ids, const struct bytes *hidden, size_t count, bool *are_r)
{
    (void)store, (void)ns, (void)query, (void)ids, (void)hidden;
    memset(are_r, 0, count * sizeof *are_r);
    return FAULT_NONE;
}
