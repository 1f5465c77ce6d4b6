/* live_question: a strict parser, since a listener that receives nothing cannot find out why. */
#include "live/topics/live_question.h"

#include <stdlib.h>
#include <strings.h>

#include "base/names.h"
#include "base/coding/percent.h"
#include "edge/json/json.h"
#include "live/topics/live_key.h"

enum { BODY_DEPTH = 2 };

struct question_reader {
    struct arena *arena;
    const struct live_source *source;
    struct live_question *question;
    const char **wrong_r;
    size_t room, record_room;
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

static enum fault add_definition(struct question_reader *reader, struct bytes text)
{
    struct live_question *question = reader->question;
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
        question->wrong = number + 1;
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
    static const char known[] = "def session last";
    const char *what;
    struct bytes text;
    if (percent_decode(reader->arena, value, true, &text, &what) ||
        percent_decode(reader->arena, name, true, &name, &what))
        return live_question_refuse(reader, FAULT_AARG, "query");
    if (!names_have(known, name) && bytes_is_utf8(name))
        return refuse_unknown(reader, known, "argument", name, "query");
    if (bytes_equal(name, BYTES("def")))
        return add_definition(reader, text);
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

static enum fault take_member(struct question_reader *reader, const struct json *member)
{
    static const char known[] = "defs session last admin";
    struct live_question *question = reader->question;
    bool is_text = member->kind == JSON_STRING;
    if (bytes_equal(member->name, BYTES("defs")))
        return take_list(reader, member);
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
        question_r->record_count > source->records_most)
        return FAULT_ALIMIT;
    question_r->at = source->body.size ? "/defs" : "/def";
    if (!question_r->count && !question_r->record_count)
        return FAULT_AARG;
    drop_doubles(arena, question_r->definitions, &question_r->count);
    drop_doubles(arena, question_r->records, &question_r->record_count);
    return FAULT_NONE;
}
