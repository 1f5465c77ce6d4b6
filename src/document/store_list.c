/* store_list: pages of headers, the range of texts that a prefix stands for, and pages of classes. */
#include "document/store.h"

#include "document/statements.h"
#include "document/store_private.h"

/* Rows read for one page: zombies and documents not changed since are read too, so the page itself is no
 * bound. */
enum { LIST_ROWS = 10000 };

enum { ID, VERSION, CTIME, DTIME, V1, V2, NUMBER };

enum { CODE_POINT_LAST = 0x10FFFF, SURROGATE_FIRST = 0xD800, SURROGATE_LAST = 0xDFFF };

/* The code point of the `size` bytes at `at`, a well-formed sequence. */
static uint32_t utf8_decode(const unsigned char *at, size_t size)
{
    static const unsigned char lead_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code = at[0] & lead_bits[size];
    for (size_t i = 1; i < size; i++)
        code = code << 6 | (at[i] & 0x3F);
    return code;
}

static size_t utf8_encode(uint32_t code, char *at)
{
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead_marks[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        at[i] = (char)(0x80 | (code & 0x3F));
    at[0] = (char)(lead_marks[size] | code);
    return size;
}

bool store_prefix_end(struct arena *arena, struct bytes prefix, struct bytes *end_r)
{
    assert(bytes_is_utf8(prefix));
    const unsigned char *text = (const unsigned char *)prefix.data;
    size_t end = prefix.size;
    while (end) {
        size_t start = end - 1;
        while (start && (text[start] & 0xC0) == 0x80)
            start--;
        uint32_t code = utf8_decode(text + start, end - start);
        if (code != CODE_POINT_LAST) {
            code = code + 1 == SURROGATE_FIRST ? SURROGATE_LAST + 1 : code + 1;
            char *copy = arena_alloc(arena, start + 4);
            memcpy(copy, prefix.data, start);
            *end_r = (struct bytes){copy, start + utf8_encode(code, copy + start)};
            return true;
        }
        end = start; /* nothing follows U+10FFFF here: the one before it grows */
    }
    return false;
}

static void add_bounds(struct pg_params *params, const struct list_query *query)
{
    struct bytes end;
    if (store_prefix_end(params->arena, query->prefix, &end)) {
        pg_add_text(params, query->class);
        pg_add_text(params, end);
        return;
    }
    /* No end: up to the next name of a class that there could be. */
    char *next = arena_alloc(params->arena, query->class.size + 1);
    memcpy(next, query->class.data, query->class.size);
    next[query->class.size] = '\x01';
    pg_add_text(params, (struct bytes){next, query->class.size + 1});
    pg_add_text(params, BYTES(""));
}

/* Rows in the order of ids: matching ones, and the last row read even when it does not match. */
static void read_page(const struct pg_result *result, const struct list_query *query, struct header *headers,
                      size_t *count_r, struct bytes *more_r)
{
    int rows = pg_rows(result);
    size_t count = 0;
    *more_r = NO_BYTES;
    for (int row = 0; row < rows && !more_r->data; row++) {
        struct header header = {
            .class = query->class,
            .id = pg_get_text(result, row, ID),
            .version = pg_get_i64(result, row, VERSION),
            .ctime = pg_get_i64(result, row, CTIME),
            .dtime = pg_get_i64(result, row, DTIME),
            .v1 = pg_get_i64(result, row, V1),
            .v2 = pg_get_i64(result, row, V2),
        };
        bool is_wanted = header.ctime != 0 && header.version > query->after;
        if (is_wanted && count == (size_t)query->limit) { /* asked for only to know that there is one */
            *more_r = headers[count - 1].id;
            continue;
        }
        if (is_wanted)
            headers[count++] = header;
        if (pg_get_i64(result, row, NUMBER) == LIST_ROWS)
            *more_r = header.id;
    }
    *count_r = count;
}

/* Runs a statement that only reads, on another connection when the first is lost. */
static enum fault read_rows(struct store *store, int space, enum statement statement,
                            const struct pg_params *params, struct pg_result **result_r)
{
    enum fault fault;
    int attempt = 0;
    *result_r = NULL;
    do {
        struct pg *pg;
        fault = store_use(store, space, &pg);
        if (!fault)
            fault = pg_run(pg, &statements[statement], params, result_r);
    } while (store_reads_again(store, space, fault, attempt++));
    return fault;
}

enum fault store_list(struct store *store, int space, struct arena *arena, const struct list_query *query,
                      struct header **headers_r, size_t *count_r, struct bytes *more_r)
{
    assert(query->limit > 0);
    struct pg_params params;
    pg_params_start(&params, arena);
    pg_add_text(&params, query->class);
    pg_add_text(&params, query->cursor.data ? query->cursor : BYTES(""));
    pg_add_text(&params, query->prefix.data ? query->prefix : BYTES(""));
    add_bounds(&params, query);
    pg_add_i64(&params, query->after);
    pg_add_i64(&params, (int64_t)query->limit + 1);
    pg_add_i64(&params, LIST_ROWS);

    struct pg_result *result;
    enum fault fault = read_rows(store, space, STATEMENT_LIST, &params, &result);
    if (fault)
        return fault;
    *headers_r = arena_alloc(arena, (size_t)pg_rows(result) * sizeof **headers_r);
    read_page(result, query, *headers_r, count_r, more_r);
    return FAULT_NONE;
}

enum fault store_classes(struct store *store, int space, struct arena *arena, struct bytes cursor,
                         int32_t limit, struct bytes **classes_r, size_t *count_r)
{
    assert(limit > 0);
    struct pg_params params;
    pg_params_start(&params, arena);
    pg_add_text(&params, cursor.data ? cursor : BYTES(""));
    pg_add_i64(&params, limit);
    struct pg_result *result;
    enum fault fault = read_rows(store, space, STATEMENT_CLASSES, &params, &result);
    if (fault)
        return fault;
    *count_r = (size_t)pg_rows(result);
    *classes_r = ARENA_ARRAY(arena, struct bytes, *count_r);
    for (size_t i = 0; i < *count_r; i++)
        (*classes_r)[i] = pg_get_text(result, (int)i, 0);
    return FAULT_NONE;
}
