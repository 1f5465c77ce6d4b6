/* history: holders of any age that catch up from the source or from one another, while the document lives on.
 * Each holder is kept twice: by delta_apply, and by a foreign client that reads the JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "model/document/delta.h"
#include "foreign_client.h"
#include "history_world.h"

#define CASES   100000 /* synchronisations of a run, at least */
#define HOLDERS 5

struct holder {
    struct document *copy; /* NULL: nothing held */
    struct foreign_client client;
};

struct crowd {
    struct world *world;
    struct holder holders[HOLDERS];
    struct builder json;
};

/* How often each kind of synchronisation came. */
static struct {
    unsigned all, first, life, gone, unchanged, known, keys, back, chained, purges, renewals, loads;
} seen;

/* --- holders ------------------------------------------------------------------------------------- */

static void assert_client(const struct holder *holder)
{
    const struct document *copy = holder->copy;
    const struct foreign_client *client = &holder->client;
    assert_int_equal(client->version, copy->header.version);
    assert_int_equal(client->ctime, copy->header.ctime);
    assert_int_equal(client->dtime, copy->header.dtime);
    assert_int_equal(client->count, copy->item_count);
    for (const struct item *item = copy->items; item < copy->items + copy->item_count; item++) {
        const struct foreign_item *its = foreign_client_find(client, item->iclass, item->key);
        assert_non_null(its);
        assert_int_equal(its->version, item->version);
        assert_int_equal(its->is_dead, item_is_tombstone(item));
        assert_int_equal(its->is_raw, item->raw);
        if (!its->is_dead)
            assert_true(bytes_equal(bytes_of(its->content), item->content));
    }
}

/* Items of the source newer than a version. */
static size_t count_newer(const struct document *source, bool of_tombstones, int64_t version)
{
    size_t count = 0;
    for (const struct item *item = source->items; item < source->items + source->item_count; item++)
        count += item_is_tombstone(item) == of_tombstones && item->version > version;
    return count;
}

static void count_case(const struct document *source, struct client_copy held,
                       const struct foreign_client *client)
{
    const struct header *header = &source->header;
    bool is_first = held.version == 0, is_life = !is_first && held.ctime != header->ctime;
    bool is_same_incarnation = !is_first && !is_life;
    bool is_back = is_same_incarnation && held.version > header->version;
    bool needs_keys = is_same_incarnation && (is_back || held.version < header->dtime);
    int64_t since = is_same_incarnation && !is_back ? held.version : 0;
    seen.all++;
    if (!document_exists(source)) {
        seen.gone++;
        return;
    }
    assert_int_equal(client->keys_came, needs_keys);
    assert_int_equal(client->items_came, count_newer(source, false, since)); /* no more than needed */
    assert_int_equal(client->dels_came, is_same_incarnation ? count_newer(source, true, since) : 0);
    seen.first += is_first;
    seen.life += is_life;
    seen.back += is_back;
    seen.keys += needs_keys && !is_back;
    seen.known += client->dels_came && !needs_keys;
    seen.unchanged += is_same_incarnation && held.version == header->version;
}

static void synchronise(struct crowd *crowd, struct holder *holder, const struct document *source)
{
    struct client_copy held = {holder->client.version, holder->client.ctime, holder->client.dtime};
    struct delta delta = delta_compute(source, held);
    builder_clear(&crowd->json, SIZE_MAX);
    delta_write_json(&delta, &crowd->json);
    foreign_client_apply(&holder->client, crowd->world->arena, builder_bytes(&crowd->json));
    count_case(source, held, &holder->client);
    struct document *copy = delta_apply(&delta, holder->copy);
    document_release(holder->copy);
    holder->copy = copy;
    assert_client(holder);
    assert_int_equal(copy->header.ctime, source->header.ctime);
    if (!document_exists(source)) {
        assert_int_equal(copy->header.version, 0);
        return;
    }
    assert_int_equal(copy->header.version, source->header.version);
    assert_int_equal(copy->json.size - copy->json_header, source->json.size - source->json_header);
    assert_memory_equal(copy->json.data + copy->json_header, source->json.data + source->json_header,
                        copy->json.size - copy->json_header); /* live items, versions and all */
    world_assert_true(crowd->world, copy);
}

/* A holder may forget removals earlier than it must. */
static void forget_removals(struct crowd *crowd, struct holder *holder)
{
    struct header header = holder->copy->header;
    header.dtime += world_draw(crowd->world, header.version - header.dtime + 1);
    struct document *copy = document_merge(holder->copy, &header, NULL, 0);
    document_release(holder->copy);
    holder->copy = copy;
    foreign_client_forget(&holder->client, header.dtime);
    assert_client(holder);
}

static void catch_up(struct crowd *crowd, struct holder *holder)
{
    struct world *world = crowd->world;
    const struct holder *other = &crowd->holders[world_draw(world, HOLDERS)];
    bool is_chained = other != holder && other->copy && world_chance(world, 30);
    seen.chained += is_chained;
    synchronise(crowd, holder, is_chained ? other->copy : world->current);
    if (world_chance(world, 5) && document_exists(holder->copy))
        forget_removals(crowd, holder);
    if (world_chance(world, 3)) {
        document_release(holder->copy);
        *holder = (struct holder){0};
    }
}

static void run_world(uint64_t seed)
{
    struct crowd crowd = {.world = world_create(seed)};
    for (int step = 0; step < WORLD_STEPS; step++) {
        world_step(crowd.world);
        for (int i = 0; i < HOLDERS; i++) /* the later ones are older */
            if (world_draw(crowd.world, 1 << i) == 0)
                catch_up(&crowd, &crowd.holders[i]);
    }
    seen.purges += crowd.world->purges;
    seen.renewals += crowd.world->renewals;
    seen.loads += crowd.world->loads;
    for (int i = 0; i < HOLDERS; i++)
        document_release(crowd.holders[i].copy);
    builder_free(&crowd.json);
    world_destroy(crowd.world);
}

static void holders_always_equal_their_source(void **state UNUSED)
{
    const char *text = getenv("STAMPD_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)clock_wall_ms();
    print_message("STAMPD_TEST_SEED=%" PRIu64 "\n", seed);
    while (seen.all < CASES)
        run_world(seed++);
    print_message(
        "%u synchronisations: %u first, %u of another life, %u of none, %u unchanged, %u with known "
        "removals, "
        "%u with keys, %u backwards, %u from other holders; %u purges, %u renewals, %u partial loads\n",
        seen.all, seen.first, seen.life, seen.gone, seen.unchanged, seen.known, seen.keys, seen.back,
        seen.chained, seen.purges, seen.renewals, seen.loads);
    /* A run that does not reach every kind often proves nothing. */
    const unsigned counts[] = {seen.first, seen.life,    seen.gone,   seen.unchanged, seen.known, seen.keys,
                               seen.back,  seen.chained, seen.purges, seen.renewals,  seen.loads};
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        assert_true(counts[i] >= 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(holders_always_equal_their_source)};
    return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
