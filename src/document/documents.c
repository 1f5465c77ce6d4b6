/* documents: read(doc) of freshness.md for one worker: cache, stamps, store. */
#include "document/documents.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "document/documents_private.h"
#include "segment/lineage.h"
#include "segment/counts/metrics.h"
#include "segment/namespaces.h"
#include "segment/notification.h"
#include "segment/shared_cache.h"
#include "segment/slots.h"
#include "store/documents/store_commit.h"
#include "store/documents/store_load.h"
#include "store/documents/store_schema.h"

struct documents *documents_create(const struct settings *settings, struct segment *segment)
{
    struct documents *documents = memory_zeroed(1, sizeof *documents, "documents");
    documents->settings = settings;
    documents->segment = segment;
    documents->store = store_create(settings, segment);
    documents->replica = settings_has_replicas(settings) ? store_create_replica(settings, segment) : NULL;
    documents->drops = lineage_drops(segment);
    documents->cache = cache_create((size_t)settings->cache_mb << 20, settings->cache_age_s * 1000);
    documents->publisher = feed_publisher_create(segment);
    documents->pulse = metrics_pulse(segment, segment_index(segment));
    documents->deadline_ms = INT64_MAX;
    documents->other_hosts = settings->hosts == HOSTS_MANY;
    documents_rest(documents);
    return documents;
}

void documents_destroy(struct documents *documents)
{
    if (!documents)
        return;
    cache_destroy(documents->cache);
    store_destroy(documents->store);
    store_destroy(documents->replica);
    feed_publisher_destroy(documents->publisher);
    free(documents);
}

void documents_rest(struct documents *documents)
{
    documents->now_ms = clock_monotonic_ms();
    cache_trim(documents->cache, documents->now_ms);
}

void documents_begin_request(struct documents *documents, int64_t deadline_ms)
{
    documents_rest(documents);
    documents->deadline_ms = deadline_ms;
}

/* Drops the copies of a former history of the databases (segment/lineage.h). */
static void documents_heed_lineage(struct documents *documents)
{
    uint64_t drops = lineage_drops(documents->segment);
    if (documents->drops == drops)
        return;
    documents->drops = drops;
    cache_clear(documents->cache);
}

bool documents_must_exit(const struct documents *documents)
{
    return documents->must_exit;
}

struct store *documents_store(struct documents *documents)
{
    return documents->store;
}

struct store *documents_replica(struct documents *documents)
{
    return documents->replica;
}

/* The segment is searched linearly: this cache remembers where a name was found. */
int documents_ns(struct documents *documents, struct bytes database)
{
    uint64_t hash = slots_hash(documents->segment, 0, NO_BYTES, database);
    struct known_ns *known = &documents->known_namespaces[hash % KNOWN_NAMESPACES];
    if (known->size && bytes_equal((struct bytes){known->database, known->size}, database))
        return known->ns;
    int ns = namespaces_find(documents->segment, database);
    if (ns >= 0) {
        known->ns = ns;
        known->size = (unsigned char)database.size;
        memcpy(known->database, database.data, database.size);
    }
    return ns;
}

static void documents_release(void *document)
{
    document_release(document);
}

/* Copies kept alive by the arena. */
struct kept {
    size_t count;
    struct document *documents[];
};

static void release_kept(void *whole)
{
    struct kept *kept = whole;
    for (size_t i = 0; i < kept->count; i++)
        document_release(kept->documents[i]);
}

static struct kept *keep_up_to(struct arena *arena, size_t most)
{
    struct kept *kept = arena_alloc(arena, sizeof *kept + most * sizeof kept->documents[0]);
    kept->count = 0;
    arena_defer(arena, release_kept, kept);
    return kept;
}

static struct cache_entry *look_up_hashed(struct documents *documents, int ns, struct document_name name,
                                          uint64_t hash, struct found *found,
                                          struct observation *observation_r)
{
    found->hash = hash;
    found->slot = slots_index(documents->segment, found->hash);
    *observation_r = slots_see(documents->segment, found->slot);
    found->tag = observation_r->stamp;
    found->was_busy = observation_r->busy;
    return cache_find(documents->cache, found->hash, ns, name.class, name.id);
}

static struct cache_entry *look_up(struct documents *documents, int ns, struct document_name name,
                                   struct found *found, struct observation *observation_r)
{
    uint64_t hash = slots_hash(documents->segment, ns, name.class, name.id);
    return look_up_hashed(documents, ns, name, hash, found, observation_r);
}

static bool is_proven(const struct cache_entry *entry, struct observation observation)
{
    return entry && entry->is_tagged && !observation.busy && entry->tag == observation.stamp;
}

/* The cached copy of the name, if it is proven; else the copy that another worker has put in the shared
 * cache under the stamp seen, which proves it just as well; it is then cached here too.  NULL: query the
 * database. */
static struct cache_entry *find_proven(struct documents *documents, int ns, struct document_name name,
                                       const struct found *found, struct observation observation,
                                       struct cache_entry *entry)
{
    if (is_proven(entry, observation))
        return entry;
    if (observation.busy || (entry && entry->is_doubted))
        return NULL;
    struct document *document = shared_cache_take(segment_shared_cache(documents->segment), found->hash, ns,
                                                  name.class, name.id, observation.stamp);
    if (!document)
        return NULL;
    entry = cache_put(documents->cache, found->hash, found->slot, ns, document);
    entry->tag = observation.stamp;
    entry->is_tagged = true;
    entry->fresh_ms = documents->other_hosts ? INT64_MIN / 2 : documents->now_ms;
    document_release(document);
    return entry;
}

static void put_on_shared_cache(struct documents *documents, int ns, const struct found *found, uint64_t tag,
                                const struct document *document)
{
    struct segment *segment = documents->segment;
    shared_cache_put(segment_shared_cache(segment), segment_index(segment), found->hash, ns, tag, document);
}

/* --- expiry --- */

static bool has_ended(const struct document *document)
{
    return document->until != DOCUMENT_FOREVER && document->until <= clock_present_minute();
}

bool documents_has_ended(const struct found *found)
{
    return has_ended(found->document);
}

void documents_judge_expiry(struct arena *arena, struct found *found)
{
    if (!has_ended(found->document))
        return;
    found->document = document_end(found->document);
    arena_defer(arena, documents_release, found->document);
}

/* Documents to load from the database, and where the results go: first at the positions of their names,
 * then, after put_in_order, only those to be loaded. */
struct wanted {
    struct load *loads;
    struct found **found; /* parallel to loads; NULL: not wanted */
    size_t count;
    uint32_t *table; /* by name: position in loads, from 1; 0: free */
    size_t mask;
};

static void want(struct arena *arena, struct wanted *wanted, size_t most, size_t index,
                 struct document_name name, struct found *found, const struct cache_entry *entry)
{
    if (!wanted->loads) {
        wanted->loads = ARENA_ARRAY(arena, struct load, most);
        wanted->found = ARENA_ARRAY(arena, struct found *, most);
    }
    struct document *copy = entry && !entry->is_aged ? document_hold(entry->document) : NULL;
    if (copy)
        arena_defer(arena, documents_release, copy); /* the cache may evict it while others are loaded */
    wanted->loads[index] = (struct load){.class = name.class, .id = name.id, .copy = copy};
    wanted->found[index] = found;
    wanted->count++;
    found->document = NULL;
}

/* The position of a wanted name in the table, or a free one.  The table has more positions than names. */
static uint32_t *find_wanted(struct wanted *wanted, uint64_t hash, struct document_name name)
{
    for (size_t at = (size_t)hash;; at++) {
        uint32_t *entry = &wanted->table[at & wanted->mask];
        if (!*entry)
            return entry;
        const struct load *load = &wanted->loads[*entry - 1];
        if (wanted->found[*entry - 1]->hash == hash && bytes_equal(load->id, name.id) &&
            bytes_equal(load->class, name.class))
            return entry;
    }
}

/* Compacts those to be loaded; of a duplicate name, the first. */
static void put_in_order(struct arena *arena, struct wanted *wanted, const struct document_name *names,
                         size_t most)
{
    size_t count = 0, room = 4;
    while (room < 2 * wanted->count)
        room *= 2;
    wanted->table = ARENA_ARRAY(arena, uint32_t, room);
    wanted->mask = room - 1;
    for (size_t i = 0; i < most; i++) {
        uint32_t *entry = wanted->found[i] ? find_wanted(wanted, wanted->found[i]->hash, names[i]) : NULL;
        if (!entry || *entry)
            continue;
        wanted->loads[count] = wanted->loads[i];
        wanted->found[count++] = wanted->found[i];
        *entry = (uint32_t)count;
    }
    wanted->count = count;
}

/* A duplicate name gets the document of the first. */
static void find_twins(struct wanted *wanted, const struct document_name *names, size_t count,
                       struct found *found)
{
    for (size_t i = 0; i < count; i++)
        if (!found[i].document)
            found[i] = *wanted->found[*find_wanted(wanted, found[i].hash, names[i]) - 1];
}

/* The database has said that the cached copy is the newest. */
static void note_fresh(struct documents *documents, int ns, const struct found *found)
{
    const struct header *header = &found->document->header;
    struct cache_entry *entry = cache_find(documents->cache, found->hash, ns, header->class, header->id);
    if (entry && entry->document == found->document)
        entry->fresh_ms = documents->now_ms;
}

/* hosts = many: compares the cached copies with the database in one query; those that moved are to be
 * loaded. */
static enum fault verify_cached(struct documents *documents, int ns, struct arena *arena,
                                const struct document_name *names, struct found *found, size_t count,
                                struct wanted *wanted)
{
    struct commit commit = {.documents = ARENA_ARRAY(arena, struct commit_document, count)};
    struct found **cached = ARENA_ARRAY(arena, struct found *, count);
    for (size_t i = 0; i < count; i++) {
        if (!found[i].document)
            continue;
        cached[commit.count] = &found[i];
        commit.documents[commit.count++] =
            (struct commit_document){.base = found[i].document, .act = DRAFT_READ};
    }
    if (!commit.count)
        return FAULT_NONE;
    enum fault fault = store_commit_verify(documents->store, ns, arena, &commit);
    if (fault && fault != FAULT_STALE)
        return fault;
    for (size_t i = 0; i < commit.count; i++) {
        if (!commit.documents[i].moved) {
            note_fresh(documents, ns, cached[i]);
            continue;
        }
        struct cache_entry entry = {.document = cached[i]->document};
        size_t index = (size_t)(cached[i] - found);
        want(arena, wanted, count, index, names[index], cached[i], &entry);
    }
    return FAULT_NONE;
}

/* Have copies been dropped since those of the loads were taken from the cache?  What was loaded may complete
 * a copy of a history that is over: it is forgotten, and nothing is completed any more. */
static bool is_of_former(struct documents *documents, const struct wanted *wanted)
{
    if (documents->drops == lineage_drops(documents->segment))
        return false;
    documents_heed_lineage(documents);
    for (size_t i = 0; i < wanted->count; i++) {
        if (wanted->loads[i].document)
            document_release(wanted->loads[i].document);
        wanted->loads[i].document = wanted->loads[i].copy = NULL;
    }
    return true;
}

static enum fault load_wanted(struct documents *documents, int ns, struct arena *arena, struct wanted *wanted,
                              size_t bytes_most)
{
    enum fault fault;
    do {
        if (clock_monotonic_ms() > documents->deadline_ms)
            return FAULT_XTIME;
        fault = wanted->count == 1
                    ? store_load(documents->store, ns, arena, wanted->loads)
                    : store_load_part(documents->store, ns, arena, wanted->loads, wanted->count, bytes_most);
    } while (!fault && is_of_former(documents, wanted));
    if (fault)
        return fault;
    for (size_t i = 0; i < wanted->count && wanted->loads[i].document; i++) {
        struct found *found = wanted->found[i];
        struct document *document = wanted->loads[i].document;
        struct cache_entry *entry = cache_put(documents->cache, found->hash, found->slot, ns, document);
        entry->tag = found->tag; /* seen before the query: a valid tag, even if a writer was marked */
        entry->is_tagged = true;
        entry->fresh_ms = documents->now_ms;
        found->document = document;
        found->from_database = true;
        arena_defer(arena, documents_release, document);
        if (!found->was_busy)
            put_on_shared_cache(documents, ns, found, found->tag, document);
    }
    return FAULT_NONE;
}

static enum fault find_stored(struct documents *documents, int ns, struct arena *arena,
                              const struct document_name *names, size_t count, size_t bytes_most,
                              struct found *found_r)
{
    struct wanted wanted = {0};
    struct kept *kept = keep_up_to(arena, count);
    uint64_t seed = 0;
    documents_heed_lineage(documents);
    for (size_t i = 0; i < count; i++) {
        struct observation observation;
        struct found *found = &found_r[i];
        /* Many of one class, which a list of copies has as one text. */
        bool is_same_class = i && names[i].class.data == names[i - 1].class.data &&
                             names[i].class.size == names[i - 1].class.size;
        if (!is_same_class)
            seed = slots_seed(documents->segment, ns, names[i].class);
        *found = (struct found){0};
        struct cache_entry *entry =
            look_up_hashed(documents, ns, names[i], slots_hash_text(seed, names[i].id), found, &observation);
        struct cache_entry *proven = is_proven(entry, observation)
                                         ? entry
                                         : find_proven(documents, ns, names[i], found, observation, entry);
        if (proven) {
            found->document = kept->documents[kept->count++] = document_hold(proven->document);
            if (!documents->other_hosts)
                proven->fresh_ms = documents->now_ms;
        } else {
            want(arena, &wanted, count, i, names[i], found, entry);
        }
    }
    enum fault fault = FAULT_NONE;
    if (documents->other_hosts && kept->count)
        fault = verify_cached(documents, ns, arena, names, found_r, count, &wanted);
    pulse_count(&documents->pulse->hits, count - wanted.count);
    if (fault || !wanted.count)
        return fault;
    pulse_count(&documents->pulse->misses, wanted.count);
    size_t all = wanted.count;
    if (count > 1)
        put_in_order(arena, &wanted, names, count);
    fault = load_wanted(documents, ns, arena, &wanted, bytes_most);
    if (!fault && wanted.count < all)
        find_twins(&wanted, names, count, found_r);
    return fault;
}

enum fault documents_find_newest(struct documents *documents, int ns, struct arena *arena,
                                 const struct document_name *names, size_t count, size_t bytes_most,
                                 struct found *found_r)
{
    enum fault fault = find_stored(documents, ns, arena, names, count, bytes_most, found_r);
    for (size_t i = 0; !fault && i < count; i++)
        if (found_r[i].document)
            documents_judge_expiry(arena, &found_r[i]);
    return fault;
}

/* An old copy does not prove that the document has expired: its expiry may have been extended since.  With
 * other hosts a stamp stands also while no notification can arrive, so the age counts from the last answer of
 * the database. */
static enum fault find_tolerated(struct documents *documents, int ns, struct arena *arena,
                                 struct document_name name, int64_t tolerance_ms, struct found *found_r)
{
    struct observation observation;
    *found_r = (struct found){0};
    documents_heed_lineage(documents);
    struct cache_entry *entry = look_up(documents, ns, name, found_r, &observation);
    bool is_young =
        entry && documents->now_ms - entry->fresh_ms <= tolerance_ms && !has_ended(entry->document);
    bool may_prove = !documents->other_hosts && !(is_young && !is_proven(entry, observation));
    struct cache_entry *proven =
        may_prove ? find_proven(documents, ns, name, found_r, observation, entry) : NULL;
    if (proven) {
        entry = proven;
        entry->fresh_ms = documents->now_ms;
    } else if (!is_young && documents_find_on_replica(documents, ns, arena, name, tolerance_ms, found_r)) {
        return FAULT_NONE;
    } else if (!is_young) {
        struct wanted wanted = {0};
        want(arena, &wanted, 1, 0, name, found_r, entry);
        pulse_count(&documents->pulse->misses, 1);
        return load_wanted(documents, ns, arena, &wanted, SIZE_MAX);
    }
    found_r->tag = entry->is_tagged ? entry->tag : observation.stamp - 1; /* no tag: matches no later one */
    found_r->document = document_hold(entry->document);
    arena_defer(arena, documents_release, entry->document);
    pulse_count(&documents->pulse->hits, 1);
    return FAULT_NONE;
}

enum fault documents_find_tolerated(struct documents *documents, int ns, struct arena *arena,
                                    struct document_name name, int64_t tolerance_ms, struct found *found_r)
{
    enum fault fault = find_tolerated(documents, ns, arena, name, tolerance_ms, found_r);
    if (!fault)
        documents_judge_expiry(arena, found_r);
    return fault;
}

enum fault documents_tolerated(struct documents *documents, int ns, struct arena *arena,
                               struct document_name name, int64_t tolerance_s,
                               const struct document **document_r)
{
    struct found found;
    enum fault fault = documents_find_tolerated(documents, ns, arena, name, tolerance_s * 1000, &found);
    if (!fault)
        *document_r = found.document;
    return fault;
}

bool documents_find_unmoved(struct documents *documents, int ns, struct arena *arena,
                            struct document_name name, int64_t age_s, const struct document **document_r)
{
    struct observation observation;
    struct found found = {0};
    documents_heed_lineage(documents);
    const struct cache_entry *entry = look_up(documents, ns, name, &found, &observation);
    if (!is_proven(entry, observation) || has_ended(entry->document) ||
        documents->now_ms - entry->fresh_ms > age_s * 1000)
        return false;
    *document_r = document_hold(entry->document);
    arena_defer(arena, documents_release, entry->document);
    return true;
}

enum fault documents_newest(struct documents *documents, int ns, struct arena *arena,
                            const struct document_name *names, size_t count,
                            const struct document **documents_r)
{
    return documents_newest_part(documents, ns, arena, names, count, SIZE_MAX, documents_r);
}

void documents_expect_newer(struct documents *documents, int ns, const struct document_name *name)
{
    notification_move(documents->segment, ns, name->class, name->id);
}

enum fault documents_newest_part(struct documents *documents, int ns, struct arena *arena,
                                 const struct document_name *names, size_t count, size_t bytes_most,
                                 const struct document **documents_r)
{
    struct found *found = ARENA_ROOM(arena, struct found, count);
    enum fault fault = documents_find_newest(documents, ns, arena, names, count, bytes_most, found);
    for (size_t i = 0; !fault && i < count; i++)
        documents_r[i] = found[i].document;
    return fault;
}

/* With other hosts the stamps do not cover all changes; a document that expires changes without a commit. */
enum fault documents_newest_proven(struct documents *documents, int ns, struct arena *arena,
                                   const struct document_name *names, size_t count,
                                   const struct document **documents_r, struct newest_proof *proofs_r)
{
    struct found *found = ARENA_ROOM(arena, struct found, count);
    enum fault fault = documents_find_newest(documents, ns, arena, names, count, SIZE_MAX, found);
    for (size_t i = 0; !fault && i < count; i++) {
        bool is_valid = !documents->other_hosts && found[i].document->until == DOCUMENT_FOREVER;
        documents_r[i] = found[i].document;
        proofs_r[i] = (struct newest_proof){is_valid, found[i].slot, found[i].tag};
    }
    return fault;
}

struct newest_proof documents_prove_class(const struct documents *documents, int ns, struct bytes class)
{
    const uint32_t slot = slots_of_class(documents->segment, ns, class);
    const struct observation observation = slots_see(documents->segment, slot);
    return (struct newest_proof){!documents->other_hosts, slot, observation.stamp};
}

bool documents_is_unmoved(const struct documents *documents, const struct newest_proof *proof)
{
    struct observation observation = slots_see(documents->segment, proof->slot);
    return !observation.busy && observation.stamp == proof->tag;
}

bool documents_is_still_newest(const struct documents *documents, const struct newest_proof *proof)
{
    return proof->is_valid && documents_is_unmoved(documents, proof);
}

void documents_keep_written(struct documents *documents, int ns, const struct found *found,
                            struct document *document, bool is_tagged, uint64_t tag)
{
    if (!store_schema_judge_expiry(documents->store, ns, document)) {
        documents_distrust(documents, ns, found);
        return;
    }
    struct cache_entry *entry = cache_put(documents->cache, found->hash, found->slot, ns, document);
    entry->is_tagged = is_tagged;
    entry->tag = tag;
    entry->fresh_ms = documents->now_ms;
    if (is_tagged)
        put_on_shared_cache(documents, ns, found, tag, document);
}

static struct cache_entry *entry_of(struct documents *documents, int ns, const struct found *found)
{
    const struct header *header = &found->document->header;
    return cache_find(documents->cache, found->hash, ns, header->class, header->id);
}

bool documents_is_written(struct documents *documents, int ns, struct document_name name, uint32_t *slot_r)
{
    uint64_t hash = slots_hash(documents->segment, ns, name.class, name.id);
    const struct cache_entry *entry = cache_find(documents->cache, hash, ns, name.class, name.id);
    *slot_r = slots_index(documents->segment, hash);
    return entry && entry->is_written;
}

void documents_set_written(struct documents *documents, int ns, const struct found *found, bool is_written)
{
    struct cache_entry *entry = entry_of(documents, ns, found);
    if (entry)
        entry->is_written = is_written;
}

void documents_distrust(struct documents *documents, int ns, const struct found *found)
{
    struct cache_entry *entry = entry_of(documents, ns, found);
    if (!entry)
        return;
    entry->is_tagged = false;
    entry->is_doubted = true;
    entry->fresh_ms = INT64_MIN / 2;
}

void documents_announce(struct documents *documents, int ns, struct arena *arena, const struct commit *commit,
                        int64_t version)
{
    const struct copy_batch *copies = commit->copies;
    size_t most = commit->count + (copies ? copies->target_count : 0), count = 0;
    if (!most || !feed_are_wanted(documents->segment, ns))
        return;
    struct subscriber_change *changes = ARENA_ARRAY(arena, struct subscriber_change, most);
    for (size_t i = 0; i < commit->count; i++) {
        const struct header *header = &commit->documents[i].base->header;
        if (commit->documents[i].act != DRAFT_READ)
            changes[count++] = (struct subscriber_change){header->class, header->id};
    }
    feed_publisher_send(documents->publisher, ns, version, changes, count);
    count = 0;
    for (size_t i = 0; copies && i < copies->target_count; i++)
        changes[count++] = (struct subscriber_change){copies->targets[i].class, copies->targets[i].id};
    feed_publisher_send(documents->publisher, ns, 0, changes, count); /* each has a version of its own */
}
