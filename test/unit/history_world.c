/* history world: the oracle, the operations, and the rows. */
#include "history_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "model/document/stamp.h"

#define FIRST_STAMP INT64_C(240228235959000) /* a leap day begins after one second */
#define NONE        (-1)

#define NAMES COUNT_OF(names)
static const struct document_name {
    struct bytes iclass, key;
} names[] = {
    {{"A", 1}, {"1", 1}},           {{"A", 1}, {"2", 1}},    {{"A", 1}, {"q\"\\", 3}}, {{"A", 1}, {"x.y", 3}},
    {{"B", 1}, {"\xC3\xA9\n.", 4}}, {{"Long", 4}, {"1", 1}}, {{"S", 1}, {"", 0}},      {{"T", 1}, {"", 0}},
};

static const struct content {
    bool raw;
    struct bytes text;
} contents[] = {
    {false, {"1", 1}},        {false, {"{\"a\":[1, 2e400]}", 16}},
    {false, {"\"t\\n\"", 5}}, {true, {"1", 1}},
    {true, {"a\"b\n", 4}},    {true, {"", 0}},
};

_Static_assert(COUNT_OF(names) == WORLD_NAMES, "each name has its row and its facts");

/* --- chance -------------------------------------------------------------------------------------- */

static uint64_t draw(struct world *world)
{
    uint64_t z = world->random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

int world_draw(struct world *world, int64_t most)
{
    return (int)(draw(world) % (uint64_t)most);
}

bool world_chance(struct world *world, int percent)
{
    return world_draw(world, 100) < percent;
}

/* The clock goes on, stands still or goes back. */
static void tick(struct world *world)
{
    int kind = world_draw(world, 10);
    int64_t ms = kind < 6    ? world_draw(world, 10)
                 : kind < 8  ? 0
                 : kind == 8 ? -world_draw(world, 40)
                             : world_draw(world, 100);
    world->now = stamp_add_ms(world->now, ms);
}

/* --- the oracle ---------------------------------------------------------------------------------- */

static const struct moment *present(const struct world *world)
{
    return &world->history[world->moments - 1];
}

/* The moment of a version. */
static const struct moment *moment_of(const struct world *world, int64_t version)
{
    size_t low = 0, high = world->moments;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (world->history[middle].version <= version)
            low = middle;
        else
            high = middle;
    }
    assert_int_equal(world->history[low].version, version);
    return &world->history[low];
}

static void assert_is(const struct document *document, const struct moment *moment)
{
    size_t count = 0;
    assert_int_equal(document->header.version, moment->version);
    assert_int_equal(document->header.ctime, moment->ctime);
    for (size_t i = 0; i < NAMES; i++) {
        const struct fact *fact = &moment->facts[i];
        const struct item *item = document_find_item(document, names[i].iclass, names[i].key);
        if (fact->content == NONE) {
            if (fact->removed > document->header.dtime) {
                assert_non_null(item);
                assert_true(item_is_tombstone(item));
                assert_int_equal(item->version, fact->removed);
                assert_int_equal(item->vop, 0);
                count++;
            } else {
                assert_null(item);
            }
            continue;
        }
        assert_non_null(item);
        assert_false(item_is_tombstone(item));
        assert_int_equal(item->version, fact->version);
        assert_int_equal(item->vop, fact->version);
        assert_int_equal(item->raw, contents[fact->content].raw);
        assert_true(bytes_equal(item->content, contents[fact->content].text));
        count++;
    }
    assert_int_equal(document->item_count, count);
}

void world_assert_true(const struct world *world, const struct document *document)
{
    assert_is(document, moment_of(world, document->header.version));
}

static int64_t volume_of(const int content[NAMES])
{
    int64_t volume = 0;
    for (size_t i = 0; i < NAMES; i++)
        if (content[i] != NONE)
            volume += (int64_t)(names[i].key.size + contents[content[i]].text.size);
    return volume;
}

/* --- an operation -------------------------------------------------------------------------------- */

/* The document in the eyes of the operation, as the oracle sees it. */
struct sight {
    bool exists, goes_on;
    int content[NAMES];
};

static void clear_sight(struct sight *sight)
{
    sight->exists = sight->goes_on = false;
    for (size_t i = 0; i < NAMES; i++)
        sight->content[i] = NONE;
}

/* One random change, to the draft and to the sight. */
static void change(struct world *world, struct draft *draft, struct sight *sight)
{
    int kind = world_draw(world, 100), n = world_draw(world, (int)NAMES),
        content = world_draw(world, (int)COUNT_OF(contents));
    if (kind < 55) {
        draft_set_item(draft, names[n].iclass, names[n].key, contents[content].raw, contents[content].text);
        sight->exists = true;
        sight->content[n] = content;
    } else if (kind < 90) {
        draft_remove_item(draft, names[n].iclass, names[n].key);
        sight->content[n] = NONE;
    } else if (kind < 95) {
        draft_create(draft);
        sight->exists = true;
    } else if (kind < 98 || !sight->exists) {
        draft_delete(draft);
        clear_sight(sight);
    } else {
        draft_delete(draft);
        draft_create(draft); /* another life at once */
        clear_sight(sight);
        sight->exists = true;
    }
    const struct item *item = draft_find_item(draft, names[n].iclass, names[n].key);
    assert_int_equal(item != NULL, sight->content[n] != NONE);
    assert_int_equal(draft_volume(draft), volume_of(sight->content));
}

static enum draft_act act_of(const struct moment *before, const struct sight *sight)
{
    bool existed = before->ctime != 0, differs = false;
    for (size_t i = 0; i < NAMES; i++)
        differs |= before->facts[i].content != sight->content[i];
    if (!sight->exists)
        return existed ? DRAFT_DELETE : DRAFT_READ;
    if (sight->goes_on)
        return differs ? DRAFT_WRITE : DRAFT_READ;
    return existed ? DRAFT_RENEW : DRAFT_WRITE;
}

static void remember(struct world *world, const struct sight *sight, int64_t version)
{
    const struct moment *before = present(world);
    struct moment *moment = &world->history[world->moments++];
    *moment = (struct moment){.version = version,
                              .ctime = !sight->exists   ? 0
                                       : sight->goes_on ? before->ctime
                                                        : version};
    for (size_t i = 0; i < NAMES; i++) {
        struct fact *fact = &moment->facts[i];
        if (sight->goes_on && sight->content[i] == before->facts[i].content) {
            *fact = before->facts[i];
            continue;
        }
        fact->content = sight->content[i];
        if (fact->content != NONE)
            fact->version = version;
        else if (sight->goes_on)
            fact->removed = version;
    }
}

/* --- the database -------------------------------------------------------------------------------- */

static size_t index_of(const struct item *item)
{
    for (size_t i = 0; i < NAMES; i++)
        if (item_compare(item->iclass, item->key, names[i].iclass, names[i].key) == 0)
            return i;
    fail();
    return 0;
}

static const struct content *content_of(const struct item *item)
{
    for (size_t i = 0; i < COUNT_OF(contents); i++)
        if (contents[i].raw == item->raw && bytes_equal(contents[i].text, item->content))
            return &contents[i];
    fail();
    return NULL;
}

/* The statements core, born, wipe and purge. */
static void store(struct world *world, enum draft_act act, const struct draft_rows *rows)
{
    if (world->header.version == 0)
        assert_true(rows->header.version > world->floor);
    world->header = rows->header;
    for (size_t i = 0; i < rows->item_count; i++) {
        const struct item *item = rows->items[i];
        bool is_tombstone = item_is_tombstone(item);
        assert_int_equal(item->version, rows->header.version);
        assert_int_equal(item->vop, is_tombstone ? 0 : rows->header.version);
        world->rows[index_of(item)] =
            (struct row){item->version, item->vop, is_tombstone ? NULL : content_of(item)};
    }
    if (act == DRAFT_DELETE || act == DRAFT_RENEW)
        for (size_t i = 0; i < NAMES; i++)
            if (world->rows[i].version < rows->header.version)
                world->rows[i] = (struct row){0};
    for (size_t i = 0; i < rows->purge_count; i++) {
        struct row *row = &world->rows[index_of(rows->purges[i])];
        assert_true(row->version > 0 && !row->content && row->version <= rows->header.dtime);
        *row = (struct row){0};
        world->purges++;
    }
}

/* The statement that loads: all, or what is newer than the copy. */
static struct document *load(struct world *world, struct document *copy)
{
    struct header header = world->header;
    header.class = BYTES("Doc");
    header.id = BYTES("i\"d");
    header.floor = world->floor;
    const struct header *held = copy ? &copy->header : NULL;
    bool is_partial = held && held->ctime && held->ctime == header.ctime && held->version >= header.dtime &&
                      held->version <= header.version;
    int64_t since = is_partial ? held->version : 0;
    struct item items[NAMES];
    size_t count = 0;
    for (size_t i = 0; i < NAMES; i++) {
        const struct row *row = &world->rows[i];
        if (row->version <= since)
            continue;
        struct item *item = &items[count++];
        *item = (struct item){
            .iclass = names[i].iclass, .key = names[i].key, .version = row->version, .vop = row->vop};
        if (row->content) {
            item->content = row->content->text;
            item->raw = row->content->raw;
        }
    }
    world->loads += is_partial;
    return is_partial ? document_merge(copy, &header, items, count) : document_build(&header, items, count);
}

static void assert_same_document(const struct document *a, const struct document *b)
{
    assert_true(bytes_equal(a->json, b->json));
    assert_int_equal(a->header.version, b->header.version);
    assert_int_equal(a->header.v1, b->header.v1);
    assert_int_equal(a->item_count, b->item_count);
    assert_int_equal(a->tombstone_count, b->tombstone_count);
    assert_int_equal(a->oldest_tombstone, b->oldest_tombstone);
    assert_int_equal(a->newest_tombstone, b->newest_tombstone);
    assert_int_equal(a->block_bytes, b->block_bytes);
    for (size_t i = 0; i < a->item_count; i++) {
        assert_true(bytes_equal(a->items[i].json, b->items[i].json));
        assert_int_equal(a->items[i].vop, b->items[i].vop);
    }
}

static void replace(struct document **place, struct document *document)
{
    document_release(*place);
    *place = document;
}

static void refresh_cache(struct world *world)
{
    replace(&world->cached, load(world, world->cached));
    assert_same_document(world->cached, world->current);
}

/* --- a commit ------------------------------------------------------------------------------------ */

/* Highest of what is there and the horizon; a new life knows all of its removals, a dead one none. */
static int64_t dtime_of(const struct document *base, const struct sight *sight, int64_t version,
                        int64_t horizon)
{
    if (!sight->exists)
        return 0;
    if (!sight->goes_on)
        return version;
    int64_t just_below = stamp_add_ms(version, -1);
    int64_t dtime = horizon < just_below ? horizon : just_below;
    return dtime > base->header.dtime ? dtime : base->header.dtime;
}

static void commit(struct world *world, struct draft *draft, const struct sight *sight)
{
    enum draft_act act = draft_act(draft);
    assert_int_equal(act, act_of(present(world), sight));
    assert_int_equal(draft_is_changed(draft), act != DRAFT_READ);
    if (act == DRAFT_READ)
        return;
    world->renewals += act == DRAFT_RENEW;
    int64_t highest = world->header.version ? world->header.version : world->floor;
    int64_t version = stamp_next(highest) > world->now ? stamp_next(highest) : world->now;
    int64_t horizon = stamp_add_ms(world->now, -world->retention_ms);
    struct draft_rows rows;
    draft_seal(draft, version, horizon, &rows);
    assert_int_equal(rows.header.v1, volume_of(sight->content));
    assert_int_equal(rows.header.dtime, dtime_of(world->current, sight, version, horizon));
    store(world, act, &rows);
    replace(&world->current, draft_snapshot(draft, &rows));
    remember(world, sight, version);
    assert_is(world->current, present(world));
    struct document *loaded = load(world, NULL);
    assert_same_document(loaded, world->current);
    document_release(loaded);
}

static void operate(struct world *world)
{
    struct draft *draft = draft_open(world->arena, world->current);
    const struct moment *before = present(world);
    struct sight sight = {.exists = before->ctime != 0, .goes_on = before->ctime != 0};
    for (size_t i = 0; i < NAMES; i++)
        sight.content[i] = before->facts[i].content;
    for (int i = 1 + world_draw(world, 4); i > 0; i--)
        change(world, draft, &sight);
    commit(world, draft, &sight);
}

/* The zombie's row goes, the floor remembers its version. */
static void purge_zombie(struct world *world)
{
    if (world->header.version == 0 || world->header.ctime != 0)
        return;
    if (world->floor < world->header.version)
        world->floor = world->header.version;
    world->header = (struct header){0};
    replace(&world->current, load(world, NULL));
}

/* --- its life ------------------------------------------------------------------------------------ */

struct world *world_create(uint64_t seed)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->random = seed;
    world->arena = arena_create("world");
    world->now = FIRST_STAMP;
    world->retention_ms = world_chance(world, 75) ? world_draw(world, 150) : 0;
    world->moments = 1;
    for (size_t i = 0; i < NAMES; i++)
        world->history[0].facts[i].content = NONE;
    world->current = load(world, NULL);
    return world;
}

void world_destroy(struct world *world)
{
    document_release(world->current);
    document_release(world->cached);
    arena_destroy(world->arena);
    free(world);
}

void world_step(struct world *world)
{
    arena_reset(world->arena);
    tick(world);
    if (world_chance(world, 70))
        operate(world);
    if (world_chance(world, 20))
        purge_zombie(world);
    if (world_chance(world, 30))
        refresh_cache(world);
}
