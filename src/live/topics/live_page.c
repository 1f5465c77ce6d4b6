/* live_page: rows of two pages are matched by their ids and keys; of those in both, the fewest are moved so
 * that all others keep their order. */
#include "live/topics/live_page.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "edge/crypto/crypto.h"
#include "edge/json/json.h"

enum { PAGE_DEPTH = 512, PAGE_TREE_DEPTH = 4 /* the body, out, the list, a row */ };
enum { NOWHERE = -1 };

/* --- reading --- */

static struct live_row row_of(const struct json *one)
{
    if (one->kind == JSON_STRING)
        return (struct live_row){.id = one->value, .key = BYTES("")};
    return (struct live_row){.id = json_text_of(one, "id", BYTES("")),
                             .key = json_text_of(one, "k", BYTES("")),
                             .version = json_i64_of(one, "v", 0)};
}

static const struct json *list_of(const struct json *out)
{
    static const char *const names[] = {"items", "docs", "ids"};
    const struct json *list = NULL;
    for (size_t i = 0; i < COUNT_OF(names) && !list; i++)
        list = json_member(out, names[i]);
    return list && list->kind == JSON_ARRAY ? list : NULL;
}

static struct bytes page_keep(char **room, struct bytes text)
{
    if (text.size)
        memcpy(*room, text.data, text.size);
    struct bytes kept = {*room, text.size};
    *room += text.size;
    return kept;
}

static struct live_page *keep_rows(const struct json *list)
{
    size_t texts = 0, count = 0;
    for (const struct json *one = list->first; one; one = one->next) {
        struct live_row row = row_of(one);
        texts += row.id.size + row.key.size;
    }
    size_t bytes = sizeof(struct live_page) + list->count * sizeof(struct live_row) + texts;
    struct live_page *page = memory_zeroed(1, bytes, "live page");
    struct live_row *rows = (struct live_row *)(void *)(page + 1);
    char *room = (char *)(rows + list->count);
    for (const struct json *one = list->first; one; one = one->next) {
        struct live_row row = row_of(one);
        rows[count++] = (struct live_row){page_keep(&room, row.id), page_keep(&room, row.key), row.version};
    }
    page->rows = rows;
    page->count = count;
    page->bytes = bytes;
    return page;
}

static struct live_page *keep_answer(struct bytes answer)
{
    size_t bytes = sizeof(struct live_page) + answer.size;
    struct live_page *page = memory_zeroed(1, bytes, "live page");
    char *room = (char *)(page + 1);
    page->answer = page_keep(&room, answer);
    page->bytes = bytes;
    return page;
}

static void set_stamp(struct live_page *page, struct bytes search)
{
    struct builder text = {0};
    char hex[CRYPTO_SHA256_HEX + 1];
    builder_printf(&text, "%zu:", search.size);
    builder_add_bytes(&text, search);
    live_page_write(page, &text);
    crypto_sha256_hex(builder_bytes(&text), hex);
    memcpy(page->stamp, hex, LIVE_STAMP_CHARACTERS);
    builder_free(&text);
}

struct live_page *live_page_read(struct arena *arena, struct bytes search, struct bytes body)
{
    struct json *root;
    if (!json_is_tree(arena, body, PAGE_DEPTH, PAGE_TREE_DEPTH, &root))
        return NULL;
    const struct json *out = json_member(root, "out"), *list = list_of(out);
    if (!out || out->kind != JSON_OBJECT)
        return NULL;
    struct live_page *page = list ? keep_rows(list) : keep_answer(out->text);
    page->has_more = list && json_member(out, "cursor");
    set_stamp(page, search);
    return page;
}

/* --- writing --- */

static void live_page_write_row(struct builder *json, const struct live_row *row, int64_t place)
{
    builder_add_text(json, "[");
    if (place != NOWHERE)
        builder_printf(json, "%" PRId64 ",", place);
    json_add_string(json, row->id);
    json_add_text(json, ",", row->key);
    builder_printf(json, ",%" PRId64 "]", row->version);
}

void live_page_write(const struct live_page *page, struct builder *json)
{
    if (page->answer.data) {
        builder_add_text(json, ",\"answer\":");
        builder_add_bytes(json, page->answer);
        return;
    }
    builder_add_text(json, ",\"rows\":[");
    for (size_t i = 0; i < page->count; i++) {
        builder_add_bytes(json, bytes_of(i ? "," : ""));
        live_page_write_row(json, &page->rows[i], NOWHERE);
    }
    builder_add_text(json, "]");
    if (page->has_more)
        builder_add_text(json, ",\"more\":true");
}

/* --- changes --- */

struct placed {
    const struct live_row *row;
    size_t place;
};

static int compare_rows(const void *a, const void *b)
{
    const struct placed *one = a, *other = b;
    int order = bytes_compare(one->row->id, other->row->id);
    return order ? order : bytes_compare(one->row->key, other->row->key);
}

static struct placed *sorted(struct arena *arena, const struct live_page *page)
{
    struct placed *list = ARENA_ROOM(arena, struct placed, page->count + 1);
    for (size_t i = 0; i < page->count; i++)
        list[i] = (struct placed){&page->rows[i], i};
    qsort(list, page->count, sizeof *list, compare_rows);
    return list;
}

/* The place of each row of the page in the other one; NOWHERE: it is not there. */
static int64_t *places_in(struct arena *arena, const struct live_page *page, const struct live_page *other)
{
    const struct placed *list = sorted(arena, other);
    int64_t *places = ARENA_ROOM(arena, int64_t, page->count + 1);
    for (size_t i = 0; i < page->count; i++) {
        const struct placed key = {&page->rows[i], 0}, *found = NULL;
        if (other->count)
            found = bsearch(&key, list, other->count, sizeof *list, compare_rows);
        places[i] = found ? (int64_t)found->place : NOWHERE;
    }
    return places;
}

/* Marks the rows, of those that were there before, that are of the longest sequence that rises. */
static bool *rising(struct arena *arena, const int64_t *before, size_t count)
{
    size_t *ends = ARENA_ROOM(arena, size_t, count + 1), length = 0;
    int64_t *former = ARENA_ROOM(arena, int64_t, count + 1);
    bool *is_kept = ARENA_ARRAY(arena, bool, count + 1);
    for (size_t i = 0; i < count; i++) {
        size_t low = 0, high = length;
        if (before[i] == NOWHERE)
            continue;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (before[ends[middle]] < before[i])
                low = middle + 1;
            else
                high = middle;
        }
        former[i] = low ? (int64_t)ends[low - 1] : NOWHERE;
        ends[low] = i;
        length = low == length ? length + 1 : length;
    }
    for (int64_t i = length ? (int64_t)ends[length - 1] : NOWHERE; i != NOWHERE; i = former[i])
        is_kept[i] = true;
    return is_kept;
}

enum change_kind { CHANGE_ENTERED, CHANGE_MOVED, CHANGE_CHANGED, CHANGE_KINDS };

void live_page_write_changes(const struct live_page *former, const struct live_page *page,
                             struct arena *arena, struct builder *json)
{
    static const char *const names[CHANGE_KINDS] = {",\"entered\":[", ",\"moved\":[", ",\"changed\":["};
    const int64_t *after = places_in(arena, former, page), *before = places_in(arena, page, former);
    const bool *is_kept = rising(arena, before, page->count);
    const char *comma = ",\"left\":[";
    for (size_t i = 0; i < former->count; i++) {
        if (after[i] != NOWHERE)
            continue;
        builder_add_bytes(json, bytes_of(comma));
        json_add_text(json, "[", former->rows[i].id);
        json_add_text(json, ",", former->rows[i].key);
        builder_add_text(json, "]");
        comma = ",";
    }
    builder_add_bytes(json, bytes_of(*(comma + 1) ? "" : "]"));
    for (int kind = 0; kind < CHANGE_KINDS; kind++) {
        comma = names[kind];
        for (size_t i = 0; i < page->count; i++) {
            bool is_in_both = before[i] != NOWHERE;
            bool is_of_kind = kind == CHANGE_ENTERED ? !is_in_both
                              : kind == CHANGE_MOVED
                                  ? is_in_both && !is_kept[i]
                                  : is_in_both && former->rows[before[i]].version != page->rows[i].version;
            if (!is_of_kind)
                continue;
            builder_add_bytes(json, bytes_of(comma));
            live_page_write_row(json, &page->rows[i], (int64_t)i);
            comma = ",";
        }
        builder_add_bytes(json, bytes_of(*(comma + 1) ? "" : "]"));
    }
    if (page->has_more != former->has_more)
        builder_printf(json, ",\"more\":%s", page->has_more ? "true" : "false");
}
