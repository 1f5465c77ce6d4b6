/* fuzz_live: live_question_read on any query string (first byte 'q') or JSON body.  What was read has
 * distinct definitions of valid classes, and each, sent alone in the other form, is read as the same.  Of a
 * search, what a worker is sent is JSON, and it follows something. */
#include "fuzz.h"

#include "model/document/item.h"
#include "edge/json/json.h"
#include "live/topics/live_key.h"
#include "live/topics/live_question.h"

const char fuzz_target[] = "live";

enum { MOST = 50, SEARCHES = 5 };

static void check_again(struct arena *arena, const struct definition *definition)
{
    struct builder body = {0}, key = {0}, other = {0};
    struct live_question question;
    const char *wrong;
    builder_add_text(&body, "{\"defs\":[");
    json_add_string(&body, definition->text);
    builder_add_text(&body, "]}");
    const struct live_source source = {.query = BYTES(""),
                                       .content_type = BYTES("application/json"),
                                       .body = builder_bytes(&body),
                                       .definitions_most = 1,
                                       .definition_bytes_most = 2048,
                                       .records_most = MOST};
    enum fault fault = live_question_read(arena, &source, &question, &wrong);
    assert(fault == FAULT_NONE && question.count + question.record_count == 1);
    const struct definition *again = question.count ? &question.definitions[0] : &question.records[0];
    assert(bytes_equal(live_key_of_definition(&key, definition), live_key_of_definition(&other, again)));
    builder_free(&body);
    builder_free(&key);
    builder_free(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct arena *arena = arena_create("fuzz");
    struct bytes text = {(const char *)data + 1, size - 1};
    bool is_query = data[0] == 'q';
    const struct live_source source = {.query = is_query ? text : BYTES(""),
                                       .content_type = BYTES("application/json"),
                                       .body = is_query ? BYTES("") : text,
                                       .definitions_most = MOST,
                                       .definition_bytes_most = 2048,
                                       .records_most = MOST,
                                       .searches_most = SEARCHES,
                                       .search_rows_most = 100};
    struct live_question question;
    const char *wrong;
    enum fault fault = live_question_read(arena, &source, &question, &wrong);
    assert(fault == FAULT_NONE || fault == FAULT_AARG || fault == FAULT_AJSON || fault == FAULT_AUTF8 ||
           fault == FAULT_ALIMIT);
    if (!fault) {
        assert(question.count + question.record_count && question.count + question.record_count <= MOST);
        assert(!is_query || !question.admin.data);
        for (size_t i = 0; i < question.count_own; i++) {
            assert(item_is_class_name(question.definitions[i].class));
            for (size_t k = 0; k < i; k++)
                assert(!bytes_equal(question.definitions[i].text, question.definitions[k].text));
            check_again(arena, &question.definitions[i]);
        }
        for (size_t i = 0, first = question.count_own; i < question.wish_count; i++) {
            struct json *body;
            assert(json_is_tree(arena, question.wishes[i].body, 128, 2, &body) && json_member(body, "param"));
            assert(question.wishes[i].end > first && question.wishes[i].end <= question.count);
            first = question.wishes[i].end;
        }
        for (size_t i = 0; i < question.record_count; i++) {
            assert(question.records[i].kind && !question.records[i].class.data);
            check_again(arena, &question.records[i]);
        }
    }
    arena_destroy(arena);
    return 0;
}
