/* cache: budget, order of use, age, replacement, absent documents, references. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "document/cache.h"

enum { NS = 3, NO_AGE = 1 << 30 };

static struct document *make(const char *id, int64_t version, size_t content_size)
{
    static char content[100000] = "\"";
    memset(content + 1, 'x', content_size);
    content[content_size + 1] = '"';
    const struct item item = {.iclass = BYTES("Sta"),
                              .key = BYTES(""),
                              .version = version,
                              .vop = version,
                              .content = {content, content_size + 2}};
    const struct header header = {.class = BYTES("Doc"),
                                  .id = bytes_of(id),
                                  .version = version,
                                  .ctime = content_size ? version : 0,
                                  .dtime = content_size ? version : 0};
    return document_build(&header, &item, content_size ? 1 : 0);
}

/* A poor hash on purpose: neighbours in a bucket must be told apart by their names. */
static uint64_t hash_of(const char *id)
{
    return (uint64_t)(id[0] & 3) << 32;
}

static struct cache_entry *put(struct cache *cache, const char *id, int64_t version, size_t content_size)
{
    struct document *document = make(id, version, content_size);
    struct cache_entry *entry = cache_put(cache, hash_of(id), 7, NS, document);
    document_release(document);
    return entry;
}

static struct cache_entry *find(struct cache *cache, const char *id)
{
    return cache_find(cache, hash_of(id), NS, BYTES("Doc"), bytes_of(id));
}

static void what_was_put_is_found(void **state UNUSED)
{
    struct cache *cache = cache_create(1 << 20, NO_AGE);
    assert_null(find(cache, "a"));
    put(cache, "a", 1, 10);
    put(cache, "e", 2, 10);
    assert_int_equal(find(cache, "a")->document->header.version, 1);
    assert_int_equal(find(cache, "e")->document->header.version, 2);
    assert_int_equal(find(cache, "e")->slot, 7);
    assert_false(find(cache, "e")->is_tagged);
    assert_null(cache_find(cache, hash_of("a"), NS + 1, BYTES("Doc"), BYTES("a")));
    assert_null(cache_find(cache, hash_of("a"), NS, BYTES("Other"), BYTES("a")));
    cache_drop(cache, find(cache, "a"));
    assert_null(find(cache, "a"));
    assert_int_equal(cache_count(cache), 1);
    cache_destroy(cache);
}

static void a_newer_copy_takes_the_place(void **state UNUSED)
{
    struct cache *cache = cache_create(1 << 20, NO_AGE);
    put(cache, "a", 1, 10)->is_tagged = true;
    size_t bytes = cache_bytes(cache);
    struct document *held = document_hold(find(cache, "a")->document);
    struct cache_entry *entry = put(cache, "a", 2, 10);
    assert_false(entry->is_tagged);
    assert_int_equal(cache_count(cache), 1);
    assert_int_equal(cache_bytes(cache), bytes);
    assert_int_equal(find(cache, "a")->document->header.version, 2);
    assert_int_equal(held->header.version, 1); /* who holds a snapshot keeps it */
    document_release(held);
    cache_put(cache, hash_of("a"), 7, NS, entry->document); /* the very same document again */
    assert_int_equal(find(cache, "a")->document->header.version, 2);
    cache_destroy(cache);
}

static void an_absent_document_is_kept_too(void **state UNUSED)
{
    struct cache *cache = cache_create(1 << 20, NO_AGE);
    put(cache, "gone", 9, 0);
    assert_false(document_exists(find(cache, "gone")->document));
    assert_int_equal(find(cache, "gone")->document->header.version, 9);
    cache_destroy(cache);
}

static void the_least_recently_used_goes_first(void **state UNUSED)
{
    struct cache *cache = cache_create(30000, NO_AGE);
    put(cache, "a", 1, 8000);
    put(cache, "b", 1, 8000);
    put(cache, "c", 1, 8000);
    assert_non_null(find(cache, "a")); /* used again: now b is the oldest */
    put(cache, "d", 1, 8000);
    assert_null(find(cache, "b"));
    assert_non_null(find(cache, "a"));
    assert_non_null(find(cache, "c"));
    assert_non_null(find(cache, "d"));
    assert_true(cache_bytes(cache) <= 30000);
    put(cache, "huge", 1, 90000); /* more than the budget: alone, for the request that wants it */
    assert_int_equal(cache_count(cache), 1);
    assert_non_null(find(cache, "huge"));
    put(cache, "small", 1, 10);
    assert_null(find(cache, "huge"));
    cache_destroy(cache);
}

static void what_is_not_used_grows_too_old(void **state UNUSED)
{
    struct cache *cache = cache_create(1 << 20, 1000);
    cache_trim(cache, 10000);
    put(cache, "a", 1, 10);
    put(cache, "b", 1, 10);
    cache_trim(cache, 10900);
    assert_non_null(find(cache, "a"));
    cache_trim(cache, 11001);
    assert_non_null(find(cache, "a"));
    assert_null(find(cache, "b"));
    cache_trim(cache, 20000);
    assert_int_equal(cache_count(cache), 0);
    assert_int_equal(cache_bytes(cache), 0);
    cache_destroy(cache);
}

static void many_documents_are_all_found(void **state UNUSED)
{
    enum { MANY = 5000 };
    struct cache *cache = cache_create(64 << 20, NO_AGE);
    char id[16];
    for (uint64_t i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "n%d", (int)i);
        struct document *document = make(id, (int64_t)i + 1, 5);
        cache_put(cache, i * 0x9E3779B97F4A7C15u, 0, NS, document);
        document_release(document);
    }
    assert_int_equal(cache_count(cache), MANY);
    for (uint64_t i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "n%d", (int)i);
        struct cache_entry *entry =
            cache_find(cache, i * 0x9E3779B97F4A7C15u, NS, BYTES("Doc"), bytes_of(id));
        assert_non_null(entry);
        assert_int_equal(entry->document->header.version, (int64_t)i + 1);
    }
    cache_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_found),
        cmocka_unit_test(a_newer_copy_takes_the_place),
        cmocka_unit_test(an_absent_document_is_kept_too),
        cmocka_unit_test(the_least_recently_used_goes_first),
        cmocka_unit_test(what_is_not_used_grows_too_old),
        cmocka_unit_test(many_documents_are_all_found),
    };
    return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
