/* documents_replica: reads of standbys. */
#include "document/documents_private.h"

#include "base/clock.h"
#include "segment/lineage.h"
#include "segment/counts/metrics.h"
#include "segment/namespaces.h"
#include "store/documents/store_load.h"

static void documents_replica_release(void *document)
{
    document_release(document);
}

static bool has_ended(const struct document *document)
{
    return document->until != DOCUMENT_FOREVER && document->until <= clock_present_minute();
}

/* What a standby shows may be of a history that is over when it is used together with what the primary has:
 * so it completes nothing, and goes with a drop of copies.  It does not take the place of a newer copy. */
bool documents_find_on_replica(struct documents *documents, int ns, struct arena *arena,
                               struct document_name name, int64_t tolerance_ms, struct found *found)
{
    struct load load = {.class = name.class, .id = name.id};
    const char *database = namespaces_database(documents->segment, ns);
    int64_t as_of_ms;
    uint64_t drops = documents->drops;
    if (tolerance_ms <= 0 || !documents->replica || !settings_replica(documents->settings, database) ||
        !store_is_young(documents->replica, ns, arena, tolerance_ms, &as_of_ms))
        return false;
    int64_t since_ms = clock_monotonic_ms();
    if (store_load(documents->replica, ns, arena, &load)) {
        store_note_failure(documents->replica, ns, since_ms);
        return false;
    }
    arena_defer(arena, documents_replica_release, load.document);
    const struct cache_entry *former = cache_find(documents->cache, found->hash, ns, name.class, name.id);
    struct found read = *found;
    read.document = load.document;
    read.from_database = true;
    read.tag--; /* no tag: matches no later one */
    if (!store_stands(documents->replica, ns) || drops != lineage_drops(documents->segment) ||
        has_ended(load.document) ||
        (former && former->document->header.version > load.document->header.version))
        return false;
    struct cache_entry *entry = cache_put(documents->cache, found->hash, found->slot, ns, load.document);
    entry->is_aged = true;
    entry->fresh_ms = as_of_ms;
    *found = read;
    pulse_count(&documents->pulse->replica_reads, 1);
    return true;
}
