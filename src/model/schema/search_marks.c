/* search_marks: a mark is the secret and a character that says what it is. */
#include "model/schema/search_marks.h"

#include <string.h>

#include "edge/json/json.h"
#include "model/schema/search_test.h"

enum { MARK_BEGIN = 'b', MARK_END = 'e', MARK_NEXT = 'n' };

void search_marks_compose(const struct search_condition *match, struct bytes texts, struct bytes secret,
                          struct builder *sql, struct pg_params *params)
{
    struct bytes language = match->field->text->language;
    const char *options = arena_printf(params->arena,
                                       "StartSel=%.*s%c,StopSel=%.*s%c,FragmentDelimiter=%.*s%c,MaxFragments="
                                       "%d,MaxWords=%d,MinWords=%d,ShortWord=0",
                                       (int)secret.size, secret.data, MARK_BEGIN, (int)secret.size,
                                       secret.data, MARK_END, (int)secret.size, secret.data, MARK_NEXT,
                                       SEARCH_MARKS_MOST, SEARCH_MARKS_WORDS, SEARCH_MARKS_LEAST);
    builder_printf(sql, "select ts_headline('pg_catalog.%.*s', t.value, ", (int)language.size, language.data);
    search_test_add_words(sql, params, match);
    pg_params_add_text(params, bytes_of(options));
    builder_printf(sql, ", $%d::text) from json_array_elements_text(", params->count);
    pg_params_add_text(params, texts);
    builder_printf(sql, "$%d::text::json) with ordinality t(value, place) order by t.place", params->count);
}

/* The next mark from `at` on, or the end of the row. */
static const char *find_mark(const char *at, const char *end, struct bytes secret)
{
    while ((size_t)(end - at) > secret.size) {
        if (memcmp(at, secret.data, secret.size) == 0)
            return at;
        const char *next = memchr(at + 1, *secret.data, (size_t)(end - at) - 1);
        at = next ? next : end;
    }
    return end;
}

bool search_marks_write(struct bytes row, struct bytes secret, struct builder *json)
{
    const char *at = row.data, *end = row.data + row.size;
    size_t start = json->size;
    bool is_marked = false;
    builder_add_text(json, "[[");
    while (at <= end) {
        const char *mark = find_mark(at, end, secret);
        char kind = mark < end ? mark[secret.size] : MARK_NEXT;
        json_add_string(json, (struct bytes){at, (size_t)(mark - at)});
        is_marked |= kind == MARK_BEGIN;
        builder_add_bytes(json, bytes_of(mark == end ? "]]" : kind == MARK_NEXT ? "],[" : ","));
        if (mark == end)
            break;
        at = mark + secret.size + 1;
    }
    if (!is_marked)
        json->size = start;
    return is_marked;
}
