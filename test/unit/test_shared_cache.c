/* test_shared_cache: copies handed from process to process: whole, under their name and tag; torn ones, dead
 * writers; and the protocol of freshness.md with a shared cache against a database that is an array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child.h"
#include "segment/processes.h"
#include "segment/shared_cache.h"
#include "segment/slots.h"
#include "segment/segment_open.h"

enum { SLOTS = 1024, OWN = 3, OTHER = 4, HASH = 77 };

static void *memory;
static struct shared_cache *shared_cache, *other; /* handles of two processes */

static int open_shared_cache(void **state UNUSED)
{
    memory = mmap(NULL, SHARED_CACHE_BUCKET_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_cache = shared_cache_create(memory, SHARED_CACHE_BUCKET_BYTES);
    other = shared_cache_create(memory, SHARED_CACHE_BUCKET_BYTES);
    return 0;
}

static int close_shared_cache(void **state UNUSED)
{
    shared_cache_destroy(shared_cache);
    shared_cache_destroy(other);
    munmap(memory, SHARED_CACHE_BUCKET_BYTES);
    return 0;
}

/* Document Doc `id` whose one item holds `size` bytes that only this version has. */
static struct document *make(const char *id, int64_t version, size_t size)
{
    static char content[SHARED_CACHE_DOCUMENT_BYTES * 2];
    for (size_t i = 0; i < size; i++)
        content[i] = (char)('a' + (version * 7 + (int64_t)i) % 26);
    const struct header header = {
        .class = BYTES("Doc"), .id = bytes_of(id), .version = version, .ctime = 1, .dtime = 1, .floor = 9};
    const struct item item = {.iclass = BYTES("Line"),
                              .key = BYTES(""),
                              .version = version,
                              .vop = version,
                              .content = {content, size},
                              .raw = true};
    return document_build(&header, &item, 1);
}

static void put(uint64_t hash, uint64_t tag, const char *id, int64_t version, size_t size)
{
    struct document *document = make(id, version, size);
    shared_cache_put(shared_cache, OWN, hash, 1, tag, document);
    document_release(document);
}

static struct document *take(uint64_t hash, uint64_t tag, const char *id)
{
    return shared_cache_take(other, hash, 1, BYTES("Doc"), bytes_of(id), tag);
}

static int64_t version_taken(uint64_t hash, uint64_t tag, const char *id)
{
    struct document *document = take(hash, tag, id);
    int64_t version = document ? document->header.version : 0;
    document_release(document);
    return version;
}

static bool is_same(const struct document *a, const struct document *b)
{
    bool same = bytes_equal(a->json, b->json) && a->json_header == b->json_header &&
                a->item_count == b->item_count && a->header.floor == b->header.floor &&
                a->header.v1 == b->header.v1 && a->tombstone_count == b->tombstone_count;
    for (uint32_t i = 0; same && i < a->item_count; i++) {
        const struct item *one = &a->items[i], *two = &b->items[i];
        same = bytes_equal(one->iclass, two->iclass) && bytes_equal(one->key, two->key) &&
               bytes_equal(one->content, two->content) && bytes_equal(one->json, two->json) &&
               !one->content.data == !two->content.data && !one->key.data == !two->key.data &&
               one->version == two->version && one->vop == two->vop && one->raw == two->raw;
    }
    return same;
}

static void a_copy_is_taken_as_it_was_put(void **state UNUSED)
{
    const struct header header = {.class = BYTES("Doc"),
                                  .id = BYTES("an \"id\" with \\ and \n"),
                                  .version = 50,
                                  .ctime = 20,
                                  .dtime = 30,
                                  .v2 = 6,
                                  .floor = 7};
    const struct item items[] = {
        {.iclass = BYTES("A"), .key = BYTES(""), .version = 40, .vop = 40, .content = BYTES("{\"x\":[1]}")},
        {.iclass = BYTES("A"), .key = BYTES("gone"), .version = 41},
        {.iclass = BYTES("B"),
         .key = BYTES("a \"key\""),
         .version = 50,
         .vop = 49,
         .content = BYTES("\"raw\"\n"),
         .raw = true},
        {.iclass = BYTES("B"),
         .key = BYTES("empty"),
         .version = 50,
         .vop = 50,
         .content = BYTES(""),
         .raw = true},
    };
    struct document *document = document_build(&header, items, COUNT_OF(items));
    shared_cache_put(shared_cache, OWN, HASH, 1, 5, document);
    struct document *copy = shared_cache_take(other, HASH, 1, header.class, header.id, 5);
    assert_non_null(copy);
    assert_true(copy != document && is_same(copy, document));
    assert_int_equal(copy->references, 1);
    /* it may be the base of the next change, like any other */
    const struct item newer = {
        .iclass = BYTES("A"), .key = BYTES("k"), .version = 60, .vop = 60, .content = BYTES("2")};
    struct header next = header;
    next.version = 60;
    struct document *one = document_merge(document, &next, &newer, 1),
                    *two = document_merge(copy, &next, &newer, 1);
    assert_true(is_same(one, two));
    document_release(one);
    document_release(two);
    document_release(copy);
    document_release(document);
}

static void what_does_not_exist_is_known_too(void **state UNUSED)
{
    const struct header header = {.class = BYTES("Doc"), .id = BYTES("z"), .version = 8, .floor = 3};
    struct document *document = document_build(&header, NULL, 0);
    shared_cache_put(shared_cache, OWN, HASH, 1, 5, document);
    struct document *copy = take(HASH, 5, "z");
    assert_non_null(copy);
    assert_false(document_exists(copy));
    assert_true(is_same(copy, document));
    document_release(copy);
    document_release(document);
}

static void only_name_and_tag_find_it(void **state UNUSED)
{
    put(HASH, 5, "a", 10, 100);
    assert_int_equal(version_taken(HASH, 5, "a"), 10);
    assert_int_equal(version_taken(HASH, 4, "a"), 0);
    assert_int_equal(version_taken(HASH, 6, "a"), 0);
    assert_int_equal(version_taken(HASH + 1, 5, "a"), 0);
    assert_int_equal(version_taken(HASH, 5, "b"), 0); /* another name of the same hash */
    assert_null(shared_cache_take(other, HASH, 2, BYTES("Doc"), BYTES("a"), 5)); /* another namespace */
    assert_null(shared_cache_take(other, HASH, 1, BYTES("Dok"), BYTES("a"), 5));
    struct shared_cache *none =
        shared_cache_create(memory, SHARED_CACHE_BUCKET_BYTES - 1); /* not even one bucket */
    struct document *document = make("a", 11, 5);
    shared_cache_put(none, OWN, HASH, 1, 9, document);
    assert_null(shared_cache_take(none, HASH, 1, BYTES("Doc"), BYTES("a"), 5));
    document_release(document);
    shared_cache_destroy(none);
}

static void the_newer_stays(void **state UNUSED)
{
    put(HASH, 5, "a", 10, 100);
    put(HASH, 4, "a", 11, 100); /* who comes late */
    assert_int_equal(version_taken(HASH, 5, "a"), 10);
    put(HASH, 5, "a", 9, 100);
    assert_int_equal(version_taken(HASH, 5, "a"), 10);
    put(HASH, 5, "a", 12, 100); /* a change that no stamp told of */
    assert_int_equal(version_taken(HASH, 5, "a"), 12);
    put(HASH, 6, "a", 13, 3000); /* grows out of its place */
    assert_int_equal(version_taken(HASH, 5, "a"), 0);
    assert_int_equal(version_taken(HASH, 6, "a"), 13);
    put(HASH, 7, "a", 14, 10); /* and shrinks */
    assert_int_equal(version_taken(HASH, 7, "a"), 14);
}

static void the_oldest_make_room(void **state UNUSED)
{
    enum { COUNT = 2000 };
    int found = 0;
    for (int64_t i = 1; i <= COUNT; i++) {
        char id[16];
        snprintf(id, sizeof id, "d%d", (int)i);
        put((uint64_t)i, 1, id, i, (size_t)(i * 37 % 1500 + (i % 100 == 0 ? 15000 : 0)));
        for (int64_t back = 0; back < 70 && back < i; back++) {
            snprintf(id, sizeof id, "d%d", (int)(i - back));
            struct document *copy = take((uint64_t)(i - back), 1, id);
            assert_true(copy || back > 0);
            if (!copy)
                continue;
            struct document *same = make(id, i - back, copy->items[0].content.size);
            assert_true(is_same(copy, same));
            document_release(same);
            document_release(copy);
            found++;
        }
    }
    assert_true(found > 5 * COUNT);
}

static void many_small_ones_fill_the_directory(void **state UNUSED)
{
    int found = 0;
    for (int i = 1; i <= 100; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        put((uint64_t)i, 1, id, i, 1);
    }
    for (int i = 1; i <= 100; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        bool is_there = version_taken((uint64_t)i, 1, id) == i;
        assert_true(is_there || i < 90); /* the last ones are there */
        found += is_there;
    }
    assert_in_range(found, 32, 64);
}

static void what_is_too_large_is_left_out(void **state UNUSED)
{
    put(HASH, 5, "a", 10, SHARED_CACHE_DOCUMENT_BYTES);
    assert_int_equal(version_taken(HASH, 5, "a"), 0);
    put(HASH, 5, "a", 10, SHARED_CACHE_DOCUMENT_BYTES - 600);
    assert_int_equal(version_taken(HASH, 5, "a"), 10);
}

/* A process that died while it wrote, as the memory would show it. */
static void a_dead_writer_is_followed(void **state UNUSED)
{
    put(HASH, 5, "a", 10, 100);
    _Atomic uint64_t *lock = memory;
    atomic_fetch_or(lock, OTHER + 1);
    assert_int_equal(version_taken(HASH, 5, "a"), 0); /* perhaps half-written */
    put(HASH, 6, "a", 11, 100);
    put(HASH + 1, 6, "b", 12, 100);
    assert_int_equal(version_taken(HASH + 1, 6, "b"), 0);
    shared_cache_recover(shared_cache, OWN); /* not its lock */
    assert_int_equal(version_taken(HASH, 6, "a"), 0);
    put(HASH, 6, "a", 11, 100);
    assert_int_equal(version_taken(HASH, 6, "a"), 0);
    shared_cache_recover(other, OTHER);
    assert_int_equal(version_taken(HASH, 5, "a"), 0); /* nothing of it is believed */
    put(HASH, 6, "a", 11, 100);
    assert_int_equal(version_taken(HASH, 6, "a"), 11);
}

/* --- many at once, in one bucket --- */

static _Atomic uint64_t *shared; /* [0] it is over, [1] copies taken, [2] copies put */

static void write_often(void *argument)
{
    int index = (int)(intptr_t)argument;
    uint64_t chance = (uint64_t)getpid();
    shared_cache_recover(shared_cache, index);
    while (!atomic_load(&shared[0])) {
        chance = chance * 6364136223846793005u + 1442695040888963407u;
        uint64_t number = chance >> 60;
        char id[8];
        snprintf(id, sizeof id, "%d", (int)number);
        uint64_t tag = atomic_fetch_add(&shared[2], 1) + 1;
        struct document *document = make(id, (int64_t)tag, (size_t)(chance >> 40 & 2047));
        shared_cache_put(shared_cache, index, number, 1, tag % 4, document);
        document_release(document);
        if ((chance >> 33 & 15) == 0)
            sched_yield();
    }
}

static void read_often(void *argument)
{
    (void)argument;
    uint64_t taken = 0;
    for (uint64_t i = 0; !atomic_load(&shared[0]); i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", (int)(i % 16));
        struct document *copy = take(i % 16, i / 16 % 4, id);
        if (!copy)
            continue;
        taken++;
        struct document *same = make(id, copy->header.version, copy->items[0].content.size);
        DEMAND(is_same(copy, same));
        DEMAND((uint64_t)copy->header.version % 4 == i / 16 % 4);
        document_release(same);
        document_release(copy);
    }
    atomic_fetch_add(&shared[1], taken);
}

static void no_copy_is_torn(void **state UNUSED)
{
    enum { WRITERS = 3, READERS = 2 };
    pid_t writers[WRITERS], readers[READERS];
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (intptr_t i = 0; i < WRITERS; i++)
        writers[i] = child_start(write_often, (void *)i);
    for (int i = 0; i < READERS; i++)
        readers[i] = child_start(read_often, NULL);
    for (intptr_t killed = 0; killed < 300; killed++) { /* now and then with the lock in hand */
        usleep(2000);
        child_kill(writers[killed % WRITERS]);
        writers[killed % WRITERS] = child_start(write_often, (void *)(killed % WRITERS));
    }
    atomic_store(&shared[0], 1);
    for (int i = 0; i < WRITERS; i++)
        child_expect(writers[i]);
    for (int i = 0; i < READERS; i++)
        child_expect(readers[i]);
    assert_true(atomic_load(&shared[1]) > 0);
    munmap(shared, 4096);
}

/* --- in the segment --- */

static void the_segment_has_a_shared_cache(void **state UNUSED)
{
    struct segment *segment, *others;
    char problem[256], path[128];
    int index;
    folder_make();
    snprintf(path, sizeof path, "%s", folder_path("segment"));
    assert_true(segment_open(&segment, path, SLOTS, 4 * SHARED_CACHE_BUCKET_BYTES, problem, sizeof problem));
    assert_true(segment_open(&others, path, SLOTS, 4 * SHARED_CACHE_BUCKET_BYTES, problem, sizeof problem));
    assert_int_equal(processes_take(segment, 1, 1, 1, &index), 1);
    segment_join(segment, index);
    struct document *document = make("a", 10, 100);
    for (uint64_t i = 0; i < 64; i++)
        shared_cache_put(segment_shared_cache(segment), index, i << 58, 1, 5, document);
    for (uint64_t i = 0; i < 64; i++) {
        struct document *copy =
            shared_cache_take(segment_shared_cache(others), i << 58, 1, BYTES("Doc"), BYTES("a"), 5);
        assert_non_null(copy);
        document_release(copy);
    }
    assert_int_equal(slots_see(others, SLOTS - 1).stamp, 0); /* it lies behind the slots */
    /* as large together, and not the same */
    struct segment *stranger;
    assert_false(segment_open(&stranger, path, SLOTS * 2, 4 * SHARED_CACHE_BUCKET_BYTES - SLOTS * 64, problem,
                              sizeof problem));
    assert_non_null(strstr(problem, "segment_slots"));
    document_release(document);
    segment_close(segment);
    segment_close(others);
    folder_remove();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_shared_cache, close_shared_cache)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_copy_is_taken_as_it_was_put),
        TEST(what_does_not_exist_is_known_too),
        TEST(only_name_and_tag_find_it),
        TEST(the_newer_stays),
        TEST(the_oldest_make_room),
        TEST(many_small_ones_fill_the_directory),
        TEST(what_is_too_large_is_left_out),
        TEST(a_dead_writer_is_followed),
        TEST(no_copy_is_torn),
        cmocka_unit_test(the_segment_has_a_shared_cache),
    };
    return cmocka_run_group_tests_name("shared cache", tests, NULL, NULL);
}
