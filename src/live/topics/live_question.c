/* live_question: a strict parser, since a listener that receives nothing cannot find out why. */
#include "live/topics/live_question.h"

#include <stdlib.h>
#include <strings.h>

#include "base/names.h"
#include "base/coding/percent.h"
#include "edge/json/json.h"
#include "live/topics/live_key.h"

enum { BODY_DEPTH = 2, SEARCH_DEPTH = 32, SEARCH_TREE_DEPTH = 1 };
enum { ROWS_STANDARD = 100, ROWS_STANDARD_MARKED = 20 }; /* of `find` without a limit */
#define SEARCH_BEGINS "find:"

struct question_reader {
    struct arena *arena;
    const struct live_source *source;
    struct live_question *question;
    const char **wrong_r;
    size_t room, record_room, wish_room, stamp_room;
    size_t position; /* of the next definition */
};

static enum fault live_question_refuse(struct question_reader *reader, enum fault fault, const char *wrong)
{
    bool is_argument = strcmp(wrong, "query") != 0 && strcmp(wrong, "body") != 0;
    *reader->wrong_r = wrong;
    reader->question->at = is_argument ? arena_printf(reader->arena, "/%s", wrong) : NULL;
    return fault;
}

static enum fault refuse_unknown(struct question_reader *reader, const char *known, const char *kind,
                                 struct bytes name, const char *wrong)
{
    struct live_question *question = reader->question;
    struct builder text = {0};
    enum fault fault = live_question_refuse(reader, FAULT_AARG, wrong);
    names_explain(known, kind, name, &text);
    question->detail = arena_copy(reader->arena, text.data, text.size);
    builder_clear(&text, text.capacity);
    json_add_pointer_name(&text, name);
    question->at = builder_take(&text, reader->arena).data;
    question->unknown = name;
    question->nearest = names_nearest(known, name);
    return fault;
}

/* --- definitions --- */

/* --- searches --- */

/* What follows for the search: collections of its class, else the class. */
static bool read_followed(struct arena *arena, struct bytes list, struct bytes class, struct live_wish *wish)
{
    size_t room = 0;
    struct definition one;
    if (!list.size)
        list = class;
    while (list.size) {
        struct bytes text = bytes_cut(&list, ' ');
        ARENA_GROW(arena, wish->followed, wish->count, room);
        wish->followed[wish->count++] = text;
        if (!definition_read(arena, text, &one) || !bytes_equal(one.class, class) || one.id.data ||
            (one.collection.data == NULL) != bytes_equal(text, class))
            return false;
    }
    return wish->count > 0;
}

/* Does the answer have rows?  Else it is a count, or totals. */
static bool has_rows(const struct json *want)
{
    return !want || (want->kind != JSON_OBJECT && !bytes_equal(want->text, BYTES("\"count\"")));
}

static bool wants_items(const struct json *want)
{
    return want && (want->kind == JSON_ARRAY || bytes_equal(want->text, BYTES("\"items\"")));
}

/* The same search for its rows alone: of items no contents are wanted. */
static enum fault write_search(struct question_reader *reader, const struct json *param,
                               struct live_wish *wish)
{
    const struct json *want = json_member(param, "want"), *limit = json_member(param, "limit");
    int64_t rows = json_member(param, "marks") ? ROWS_STANDARD_MARKED : ROWS_STANDARD;
    int64_t most = reader->source->search_rows_most;
    struct builder body = {0};
    if (limit && has_rows(want) && json_is_i64(limit, &rows) && rows > most)
        reader->question->too_many_rows = rows;
    builder_add_text(&body, "{\"param\":{");
    for (const struct json *one = param->first; one; one = one->next) {
        if (bytes_equal(one->name, BYTES("marks")) || (wants_items(want) && one == want))
            continue;
        builder_add_bytes(&body, bytes_of(body.data[body.size - 1] == '{' ? "" : ","));
        json_add_string(&body, one->name);
        builder_add_text(&body, ":");
        builder_add_bytes(&body, one->text);
    }
    if (wants_items(want))
        builder_add_text(&body, ",\"want\":[\"-\"]");
    if (has_rows(want) && !limit)
        builder_printf(&body, ",\"limit\":%lld", (long long)(rows < most ? rows : most));
    builder_add_text(&body, "}}");
    wish->body = builder_take(&body, reader->arena);
    return reader->question->too_many_rows ? FAULT_ALIMIT : FAULT_NONE;
}

static enum fault add_wish(struct question_reader *reader, struct bytes text, size_t position)
{
    struct live_question *question = reader->question;
    const struct bytes rest = {text.data + strlen(SEARCH_BEGINS), text.size - strlen(SEARCH_BEGINS)};
    const char *brace = rest.size ? memchr(rest.data, '{', rest.size) : NULL;
    struct live_wish wish = {.text = text, .position = position};
    struct json *param = NULL;
    if (question->wish_count >= reader->source->searches_most) {
        question->wish_count++;
        return FAULT_NONE;
    }
    for (size_t i = 0; i < question->wish_count; i++)
        if (bytes_equal(question->wishes[i].text, text))
            return FAULT_NONE; /* events have the place of the first */
    size_t before = brace ? (size_t)(brace - rest.data) : 0;
    bool is_one = brace && json_is_tree(reader->arena, (struct bytes){brace, rest.size - before},
                                        SEARCH_DEPTH, SEARCH_TREE_DEPTH, &param);
    struct bytes class = json_text_of(param, "c", BYTES(""));
    if (!is_one || json_member(param, "cursor") ||
        !read_followed(reader->arena, (struct bytes){rest.data, before}, class, &wish)) {
        question->wrong = position + 1;
        return live_question_refuse(reader, FAULT_AARG, "def");
    }
    enum fault fault = write_search(reader, param, &wish);
    if (fault)
        return fault;
    ARENA_GROW(reader->arena, question->wishes, question->wish_count, reader->wish_room);
    question->wishes[question->wish_count++] = wish;
    return FAULT_NONE;
}

/* Their definitions stand behind all others, and may repeat these. */
static void add_followed(struct question_reader *reader)
{
    struct live_question *question = reader->question;
    question->count_own = question->count;
    for (size_t i = 0; i < question->wish_count; i++) {
        struct live_wish *wish = &question->wishes[i];
        for (size_t k = 0; k < wish->count; k++) {
            struct definition definition;
            ARENA_GROW(reader->arena, question->definitions, question->count, reader->room);
            if (definition_read(reader->arena, wish->followed[k], &definition))
                question->definitions[question->count++] = definition;
        }
        wish->end = question->count;
    }
}

static enum fault add_stamp(struct question_reader *reader, struct bytes text)
{
    struct live_question *question = reader->question;
    if (question->stamp_count >= reader->source->searches_most)
        return live_question_refuse(reader, FAULT_AARG, "have");
    ARENA_GROW(reader->arena, question->stamps, question->stamp_count, reader->stamp_room);
    question->stamps[question->stamp_count++] = text;
    return FAULT_NONE;
}

/* --- all definitions --- */

static enum fault add_definition(struct question_reader *reader, struct bytes text)
{
    struct live_question *question = reader->question;
    size_t position = reader->position++;
    if (text.size <= reader->source->definition_bytes_most && bytes_has_prefix(text, BYTES(SEARCH_BEGINS)))
        return add_wish(reader, text, position);
    bool is_of_records = definition_is_of_records(text);
    size_t number = question->count + question->record_count;
    if (number >= reader->source->definitions_most ||
        (is_of_records && question->record_count >= reader->source->records_most)) {
        *(is_of_records ? &question->record_count : &question->count) += 1;
        return FAULT_NONE; /* only counted, for the refusal */
    }
    if (text.size > reader->source->definition_bytes_most) {
        question->too_long = text.size;
        return FAULT_ALIMIT;
    }
    struct definition definition;
    bool is_valid = is_of_records ? definition_read_records(reader->arena, text, &definition)
                                  : definition_read(reader->arena, text, &definition);
    if (!is_valid) {
        question->wrong = position + 1;
        return live_question_refuse(reader, FAULT_AARG, "def");
    }
    if (is_of_records) {
        ARENA_GROW(reader->arena, question->records, question->record_count, reader->record_room);
        question->records[question->record_count++] = definition;
    } else {
        ARENA_GROW(reader->arena, question->definitions, question->count, reader->room);
        question->definitions[question->count++] = definition;
    }
    return FAULT_NONE;
}

/* The meaning of a definition, and its position. */
struct meant {
    struct bytes key;
    size_t position;
};

static int compare_meant(const void *a, const void *b)
{
    const struct meant *one = a, *other = b;
    int order = bytes_compare(one->key, other->key);
    return order ? order : (one->position > other->position) - (one->position < other->position);
}

/* Of several definitions with the same meaning, the first is kept. */
static void drop_doubles(struct arena *arena, struct definition *definitions, size_t *count)
{
    struct meant *meant = ARENA_ARRAY(arena, struct meant, *count);
    struct builder room = {0};
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        struct bytes key = live_key_of_definition(&room, &definitions[i]);
        meant[i] = (struct meant){{arena_copy(arena, key.data, key.size), key.size}, i};
    }
    builder_free(&room);
    qsort(meant, *count, sizeof *meant, compare_meant);
    for (size_t i = 1; i < *count; i++)
        if (bytes_equal(meant[i].key, meant[i - 1].key))
            definitions[meant[i].position].text = NO_BYTES;
    for (size_t i = 0; i < *count; i++)
        if (definitions[i].text.data)
            definitions[kept++] = definitions[i];
    *count = kept;
}

static enum fault take_session(struct question_reader *reader, struct bytes text)
{
    if (reader->question->session.data || !definition_is_session(text))
        return live_question_refuse(reader, FAULT_AARG, "session");
    reader->question->session = text;
    return FAULT_NONE;
}

/* --- query string --- */

static enum fault live_question_take_pair(struct question_reader *reader, struct bytes name,
                                          struct bytes value)
{
    static const char known[] = "def have session last";
    const char *what;
    struct bytes text;
    if (percent_decode(reader->arena, value, true, &text, &what) ||
        percent_decode(reader->arena, name, true, &name, &what))
        return live_question_refuse(reader, FAULT_AARG, "query");
    if (!names_have(known, name) && bytes_is_utf8(name))
        return refuse_unknown(reader, known, "argument", name, "query");
    if (bytes_equal(name, BYTES("def")))
        return add_definition(reader, text);
    if (bytes_equal(name, BYTES("have")))
        return add_stamp(reader, text);
    if (bytes_equal(name, BYTES("session")))
        return take_session(reader, text);
    if (!bytes_equal(name, BYTES("last")) || reader->question->last.data || !bytes_is_utf8(text))
        return live_question_refuse(reader, FAULT_AARG, "query");
    reader->question->last = text;
    return FAULT_NONE;
}

static enum fault read_query(struct question_reader *reader)
{
    struct bytes query = reader->source->query;
    while (query.size) {
        struct bytes value = bytes_cut(&query, '&');
        struct bytes name = bytes_cut(&value, '=');
        enum fault fault = live_question_take_pair(reader, name, value);
        if (fault)
            return fault;
    }
    return FAULT_NONE;
}

/* --- body --- */

static bool live_question_is_json(struct bytes type)
{
    static const char name[] = "application/json";
    size_t size = sizeof name - 1;
    return type.size >= size && strncasecmp(type.data, name, size) == 0 &&
           (type.size == size || type.data[size] == ';' || type.data[size] == ' ');
}

static enum fault take_list(struct question_reader *reader, const struct json *list)
{
    if (list->kind != JSON_ARRAY)
        return live_question_refuse(reader, FAULT_AARG, "defs");
    size_t number = 0;
    for (const struct json *one = list->first; one; one = one->next) {
        number++;
        enum fault fault = one->kind == JSON_STRING ? add_definition(reader, one->value)
                                                    : live_question_refuse(reader, FAULT_AARG, "defs");
        if (fault) {
            reader->question->wrong = number;
            reader->question->at = arena_printf(reader->arena, "/defs/%zu", number - 1);
            return fault;
        }
    }
    return FAULT_NONE;
}

static enum fault take_stamps(struct question_reader *reader, const struct json *list)
{
    enum fault fault = FAULT_NONE;
    for (const struct json *one = list->first; one && !fault; one = one->next)
        fault = one->kind == JSON_STRING ? add_stamp(reader, one->value)
                                         : live_question_refuse(reader, FAULT_AARG, "have");
    return fault;
}

static enum fault take_member(struct question_reader *reader, const struct json *member)
{
    static const char known[] = "defs have session last admin";
    struct live_question *question = reader->question;
    bool is_text = member->kind == JSON_STRING;
    if (bytes_equal(member->name, BYTES("defs")))
        return take_list(reader, member);
    if (bytes_equal(member->name, BYTES("have")) && member->kind == JSON_ARRAY)
        return take_stamps(reader, member);
    if (bytes_equal(member->name, BYTES("session")) && is_text)
        return take_session(reader, member->value);
    if (bytes_equal(member->name, BYTES("last")) && is_text && !question->last.data)
        question->last = member->value;
    else if (bytes_equal(member->name, BYTES("admin")) && is_text)
        question->admin = member->value;
    else if (!names_have(known, member->name))
        return refuse_unknown(reader, known, "member", member->name, "body");
    else
        return live_question_refuse(reader, FAULT_AARG,
                                    arena_copy(reader->arena, member->name.data, member->name.size));
    return FAULT_NONE;
}

static enum fault live_question_read_body(struct question_reader *reader)
{
    const struct json_limits limits = {.depth = BODY_DEPTH, .tree_depth = BODY_DEPTH};
    struct json *body;
    struct json_problem problem;
    if (!reader->source->body.size)
        return FAULT_NONE;
    if (!live_question_is_json(reader->source->content_type))
        return live_question_refuse(reader, FAULT_ATYPE, "body");
    enum fault fault = json_read(reader->arena, reader->source->body, &limits, &body, &problem);
    if (fault)
        return live_question_refuse(reader, fault == FAULT_ALIMIT ? FAULT_AARG : fault, "body");
    if (body->kind != JSON_OBJECT)
        return live_question_refuse(reader, FAULT_AARG, "body");
    for (const struct json *member = body->first; member && !fault; member = member->next)
        fault = take_member(reader, member);
    return fault;
}

enum fault live_question_read(struct arena *arena, const struct live_source *source,
                              struct live_question *question_r, const char **wrong_r)
{
    struct question_reader reader = {
        .arena = arena, .source = source, .question = question_r, .wrong_r = wrong_r};
    *question_r = (struct live_question){0};
    *wrong_r = "def";
    enum fault fault = FAULT_FIRST(read_query(&reader), live_question_read_body(&reader));
    if (fault)
        return fault;
    if (question_r->count + question_r->record_count > source->definitions_most ||
        question_r->record_count > source->records_most || question_r->wish_count > source->searches_most)
        return FAULT_ALIMIT;
    question_r->at = source->body.size ? "/defs" : "/def";
    if (!question_r->count && !question_r->record_count && !question_r->wish_count)
        return FAULT_AARG;
    drop_doubles(arena, question_r->definitions, &question_r->count);
    drop_doubles(arena, question_r->records, &question_r->record_count);
    add_followed(&reader);
    if (question_r->count + question_r->record_count > source->definitions_most)
        return FAULT_ALIMIT;
    return FAULT_NONE;
}
