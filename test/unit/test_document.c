/* document: the block, its JSON, slices, merging, finding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "model/document/document.h"

#define BIRTH INT64_C(230501100000000)

static struct header header_of(const char *id, int64_t version, int64_t dtime)
{
    return (struct header){
        .class = BYTES("Order"), .id = bytes_of(id), .version = version, .ctime = BIRTH, .dtime = dtime};
}

static struct item json_item(const char *iclass, const char *key, int64_t version, const char *content)
{
    return (struct item){.iclass = bytes_of(iclass),
                         .key = bytes_of(key),
                         .version = version,
                         .vop = version,
                         .content = bytes_of(content)};
}

static struct item raw_item(const char *iclass, const char *key, int64_t version, const char *content)
{
    struct item item = json_item(iclass, key, version, content);
    item.raw = true;
    return item;
}

static struct item tombstone(const char *iclass, const char *key, int64_t version)
{
    return (struct item){.iclass = bytes_of(iclass), .key = bytes_of(key), .version = version};
}

static bool is_inside(const struct document *document, struct bytes text)
{
    const char *block = (const char *)document;
    return text.data >= block && text.data + text.size <= block + document->block_bytes;
}

static bool is_slice(struct bytes text, struct bytes of)
{
    return text.data >= of.data && text.data + text.size <= of.data + of.size;
}

#define assert_bytes(actual, expected)                                                                       \
    do {                                                                                                     \
        struct bytes actual_ = (actual);                                                                     \
        assert_int_equal(actual_.size, strlen(expected));                                                    \
        assert_memory_equal(actual_.data, (expected), actual_.size);                                         \
    } while (0)

static void json_is_ready_in_order(void **state UNUSED)
{
    struct header header = header_of("2023/17", BIRTH + 9, BIRTH + 1);
    header.v1 = 12345; /* not believed */
    header.v2 = 7;
    header.floor = 3;
    const struct item items[] = {
        raw_item("Blob", "", BIRTH, "AAEC"),     json_item("Line", "1", BIRTH + 2, "{\"n\": 1e400}"),
        tombstone("Line", "2", BIRTH + 5),       json_item("Line", "3", BIRTH + 9, "[1, 2]"),
        json_item("Total", "", BIRTH + 9, "17"),
    };
    struct document *document = document_build(&header, items, COUNT_OF(items));
    assert_bytes(document->json, "{\"c\":\"Order\",\"id\":\"2023/"
                                 "17\",\"v\":230501100000009,\"ct\":230501100000000,\"dt\":230501100000001,"
                                 "\"items\":[{\"c\":\"Blob\",\"v\":230501100000000,\"s\":\"AAEC\"},"
                                 "{\"c\":\"Line\",\"k\":\"1\",\"v\":230501100000002,\"j\":{\"n\": 1e400}},"
                                 "{\"c\":\"Line\",\"k\":\"3\",\"v\":230501100000009,\"j\":[1, 2]},"
                                 "{\"c\":\"Total\",\"v\":230501100000009,\"j\":17}]}");
    assert_memory_equal(document->json.data + document->json_header, ",\"items\":[", 10);
    assert_int_equal(document->references, 1);
    assert_int_equal(document->item_count, 5);
    assert_int_equal(document->tombstone_count, 1);
    assert_int_equal(document->oldest_tombstone, BIRTH + 5);
    assert_int_equal(document->newest_tombstone, BIRTH + 5);
    assert_int_equal(document->header.v1, 4 + 1 + 12 + 1 + 6 + 2);
    assert_int_equal(document->header.v2, 7);
    assert_int_equal(document->header.floor, 3);
    assert_bytes(document->items[2].json, "{\"c\":\"Line\",\"k\":\"2\",\"v\":230501100000005}");
    assert_true(item_is_tombstone(&document->items[2]));
    assert_false(is_slice(document->items[2].json, document->json));
    for (size_t i = 0; i < document->item_count; i++) {
        const struct item *item = &document->items[i];
        assert_true(bytes_equal(item->iclass, items[i].iclass) && is_slice(item->iclass, item->json));
        assert_true(bytes_equal(item->key, items[i].key));
        assert_true(bytes_equal(item->content, items[i].content));
        assert_int_equal(item->raw, items[i].raw);
        assert_int_equal(item->version, items[i].version);
        assert_int_equal(item->vop, items[i].vop);
        assert_true(is_inside(document, item->json));
        if (item->key.size)
            assert_true(is_slice(item->key, item->json));
        if (item->content.data)
            assert_true(is_slice(item->content, item->json) && is_slice(item->json, document->json));
    }
    document_release(document);
}

static void texts_with_escapes_are_kept_beside(void **state UNUSED)
{
    struct header header = header_of("a\"b\\c", BIRTH, BIRTH);
    const struct item items[] = {
        json_item("A", "k\n", BIRTH, "\"\\u00e9\""),
        raw_item("A", "plain", BIRTH, "tab\there\x01"),
        raw_item("B", "", BIRTH, ""),
    };
    struct document *document = document_build(&header, items, COUNT_OF(items));
    assert_bytes(document->json,
                 "{\"c\":\"Order\",\"id\":\"a\\\"b\\\\c\",\"v\":230501100000000,\"ct\":230501100000000,"
                 "\"dt\":230501100000000,"
                 "\"items\":[{\"c\":\"A\",\"k\":\"k\\n\",\"v\":230501100000000,\"j\":\"\\u00e9\"},"
                 "{\"c\":\"A\",\"k\":\"plain\",\"v\":230501100000000,\"s\":\"tab\\there\\u0001\"},"
                 "{\"c\":\"B\",\"v\":230501100000000,\"s\":\"\"}]}");
    assert_bytes(document->header.id, "a\"b\\c");
    assert_bytes(document->items[0].key, "k\n");
    assert_bytes(document->items[1].content, "tab\there\x01");
    assert_non_null(document->items[2].content.data);
    assert_int_equal(document->items[2].content.size, 0);
    assert_true(is_inside(document, document->items[0].key) &&
                is_inside(document, document->items[1].content));
    assert_true(is_inside(document, document->header.id));

    /* They move into the next snapshot, too. */
    struct header later = header;
    later.version = BIRTH + 1;
    struct document *merged = document_merge(document, &later, NULL, 0);
    document_release(document);
    assert_bytes(merged->header.id, "a\"b\\c");
    assert_bytes(merged->items[0].key, "k\n");
    assert_bytes(merged->items[0].content, "\"\\u00e9\"");
    assert_bytes(merged->items[1].content, "tab\there\x01");
    assert_bytes(merged->items[2].content, "");
    assert_non_null(merged->items[2].content.data);
    assert_true(is_inside(merged, merged->items[0].key) && is_inside(merged, merged->items[1].content));
    document_release(merged);
}

static void absence_is_a_snapshot(void **state UNUSED)
{
    struct header header = {.class = BYTES("Order"), .id = BYTES("x"), .version = BIRTH + 7, .floor = BIRTH};
    struct document *document = document_build(&header, NULL, 0);
    assert_false(document_exists(document));
    assert_int_equal(document->header.version, BIRTH + 7); /* the zombie's */
    assert_int_equal(document->header.floor, BIRTH);
    assert_bytes(document->json, "{\"c\":\"Order\",\"id\":\"x\",\"v\":0,\"ct\":0,\"dt\":0,\"items\":[]}");
    assert_null(document_find_item(document, BYTES("A"), BYTES("")));
    document_release(document);

    header = header_of("x", BIRTH, BIRTH); /* living, without items */
    document = document_build(&header, NULL, 0);
    assert_true(document_exists(document));
    assert_bytes(document->json, "{\"c\":\"Order\",\"id\":\"x\",\"v\":230501100000000,\"ct\":230501100000000,"
                                 "\"dt\":230501100000000,\"items\":[]}");
    document_release(document);
}

static void newer_items_are_merged(void **state UNUSED)
{
    struct header header = header_of("x", BIRTH + 10, BIRTH);
    const struct item items[] = {
        json_item("A", "1", BIRTH, "1"),         tombstone("A", "2", BIRTH + 3),
        json_item("A", "3", BIRTH, "\"three\""), tombstone("A", "4", BIRTH + 8),
        json_item("A", "5", BIRTH, "5"),
    };
    struct document *copy = document_build(&header, items, COUNT_OF(items));
    const struct item newer[] = {
        raw_item("A", "0", BIRTH + 12, "q\"q"),
        json_item("A", "2", BIRTH + 11, "22"),
        tombstone("A", "3", BIRTH + 12),
        json_item("B", "", BIRTH + 12, "{}"),
    };
    header.version = BIRTH + 12;
    header.dtime = BIRTH + 8;
    struct document *merged = document_merge(copy, &header, newer, COUNT_OF(newer));
    const struct item expected[] = {newer[0], items[0], newer[1], newer[2], items[4], newer[3]};
    struct document *same = document_build(&header, expected, COUNT_OF(expected));
    assert_int_equal(merged->item_count, 6);
    assert_int_equal(merged->tombstone_count, 1);
    assert_int_equal(merged->oldest_tombstone, BIRTH + 12);
    assert_int_equal(merged->header.v1, same->header.v1);
    assert_int_equal(merged->block_bytes, same->block_bytes);
    assert_true(bytes_equal(merged->json, same->json));
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_true(bytes_equal(merged->items[i].json, same->items[i].json));
        assert_true(bytes_equal(merged->items[i].content, expected[i].content));
        assert_int_equal(merged->items[i].vop, expected[i].vop);
        assert_int_equal(merged->items[i].raw, expected[i].raw);
    }
    assert_int_equal(copy->item_count, 5); /* the copy is as it was */
    document_release(copy);
    document_release(merged);
    document_release(same);
}

static void items_are_found(void **state UNUSED)
{
    struct header header = header_of("x", BIRTH, BIRTH);
    char keys[200][16];
    struct item items[200];
    for (int i = 0; i < 200; i++) {
        snprintf(keys[i], sizeof keys[i], "%03d", 2 * i);
        items[i] = i % 3 ? json_item("K", keys[i], BIRTH, "0") : tombstone("K", keys[i], BIRTH);
    }
    for (size_t count = 0; count <= 200; count += 25) {
        struct document *document = document_build(&header, items, count);
        for (int i = 0; i < 400; i++) {
            char key[16];
            snprintf(key, sizeof key, "%03d", i);
            const struct item *item = document_find_item(document, BYTES("K"), bytes_of(key));
            if (i % 2 || (size_t)i / 2 >= count)
                assert_null(item);
            else
                assert_ptr_equal(item, &document->items[i / 2]);
        }
        assert_null(document_find_item(document, BYTES("J"), BYTES("000")));
        assert_null(document_find_item(document, BYTES("K"), BYTES("")));
        document_release(document);
    }
}

static void references_are_counted(void **state UNUSED)
{
    struct header header = header_of("x", BIRTH, BIRTH);
    struct document *document = document_build(&header, NULL, 0);
    assert_ptr_equal(document_hold(document), document);
    document_release(document);
    assert_int_equal(document->references, 1);
    document_release(document);
    document_release(NULL);
}

static void class_names_are_judged(void **state UNUSED)
{
    static const char *const good[] = {"A", "Abc", "Z9", "Abcdefghijklmnop"};
    static const char *const bad[] = {"", "a", "9A", "A_", "A b", "Abcdefghijklmnopq", "\xC3\x89t", "A."};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(item_is_class_name(bytes_of(good[i])));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(item_is_class_name(bytes_of(bad[i])));
    assert_false(item_is_class_name(NO_BYTES));
    assert_false(item_is_class_name((struct bytes){"A\0", 2}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_ready_in_order), cmocka_unit_test(texts_with_escapes_are_kept_beside),
        cmocka_unit_test(absence_is_a_snapshot),  cmocka_unit_test(newer_items_are_merged),
        cmocka_unit_test(items_are_found),        cmocka_unit_test(references_are_counted),
        cmocka_unit_test(class_names_are_judged),
    };
    return cmocka_run_group_tests_name("document", tests, NULL, NULL);
}
