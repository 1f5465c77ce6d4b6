/* find_marks: the texts of a page are sent to the database in one statement, as far as they are not too many:
 * what it costs depends on the texts of the items that the answer has, and on nothing that is hidden. */
#include "operation/documents/find_marks.h"

#include "edge/crypto/crypto.h"
#include "model/schema/schema_paths.h"
#include "model/schema/search.h"
#include "operation/documents/find_where.h"

enum {
    TEXT_MOST = 16384,  /* bytes of a member */
    PAGE_MOST = 262144, /* bytes of all of them */
    MEMBERS_MOST = 4,   /* of a field with words */
    DEPTH_MOST = 128
};

enum fault find_marks_read(const struct reader *reader, struct search *search)
{
    const struct json *param = reader->call->param;
    const struct search_branch *branch = &search->branches[0];
    const struct schema_field *field;
    struct bytes name;
    enum fault fault = reader_text(reader, param, "marks", &name);
    if (fault || !name.data)
        return fault;
    fault = find_where_field(reader, search, name, &field);
    for (size_t i = 0; i < branch->count && search->branch_count == 1 && !fault; i++)
        if (field->text && branch->conditions[i].field == field && search_is_match(&branch->conditions[i]))
            search->marks = &branch->conditions[i];
    if (!fault && !search->marks)
        fault = reader_wrong(reader, param, "marks",
                             "A field is expected with one match on it that is in no alternative.");
    if (!fault && (!search->wants_items || search->wants_totals))
        fault = reader_wrong(reader, param, "marks", "Items, or members of them, have excerpts.");
    return fault;
}

/* --- texts --------------------------------------------------------------------------------------- */

/* A member of an item, and where its excerpts are. */
struct marked_text {
    size_t item;
    struct bytes member;
};

struct marked_texts {
    struct marked_text *list;
    size_t count;
    size_t room;          /* bytes that are left */
    struct builder array; /* of JSON */
};

static struct bytes cut(struct bytes text, size_t most)
{
    size_t size = text.size < most ? text.size : most;
    while (size < text.size && size && ((unsigned char)text.data[size] & 0xC0) == 0x80)
        size--;
    return (struct bytes){text.data, size};
}

/* A string, or the strings of a list, as their words were found. */
static struct bytes text_of(struct arena *arena, const struct json *value)
{
    struct builder text = {0};
    if (value->kind == JSON_STRING)
        return value->value;
    for (const struct json *one = value->first; one && text.size < TEXT_MOST; one = one->next) {
        if (one->kind != JSON_STRING)
            continue;
        builder_add_bytes(&text, bytes_of(text.size ? "\n" : ""));
        builder_add_bytes(&text, cut(one->value, TEXT_MOST));
    }
    return builder_take(&text, arena);
}

static void add_member(struct marked_texts *texts, size_t item, struct bytes name, struct bytes whole)
{
    struct bytes text = cut(whole, TEXT_MOST);
    if (!text.size || text.size > texts->room)
        return;
    texts->room -= text.size;
    builder_add_bytes(&texts->array, bytes_of(texts->count ? "," : "["));
    json_add_string(&texts->array, text);
    texts->list[texts->count++] = (struct marked_text){item, name};
}

/* What the path leads to: a string, or the strings of a list. */
static struct bytes text_at(struct arena *arena, const struct schema_path *path, struct bytes content)
{
    struct schema_field field = {.path = path, .is_list = true};
    const struct json *const *values;
    size_t count = 0;
    struct builder text = {0};
    bool is_there = schema_paths_follow(arena, &field, content, &values, &count);
    field.is_list = false;
    if (!is_there && !schema_paths_follow(arena, &field, content, &values, &count))
        return NO_BYTES;
    for (size_t i = 0; i < count && text.size <= TEXT_MOST; i++) {
        if (values[i]->kind != JSON_STRING)
            continue;
        builder_add_bytes(&text, bytes_of(text.size ? "\n" : ""));
        builder_add_bytes(&text, cut(values[i]->value, TEXT_MOST));
    }
    return builder_take(&text, arena);
}

/* "body.text": no member that has its own name has a dot in it. */
static struct bytes name_of(struct arena *arena, const struct schema_path *path)
{
    struct builder name = {0};
    for (size_t i = 0; i < path->count; i++) {
        builder_add_bytes(&name, bytes_of(i ? "." : ""));
        builder_add_bytes(&name, path->members[i]);
    }
    return builder_take(&name, arena);
}

static void add_item(struct arena *arena, struct marked_texts *texts, const struct search_condition *match,
                     size_t item, struct bytes content)
{
    const struct schema_text *words = match->field->text;
    struct json *root;
    if (!json_is_tree(arena, content, DEPTH_MOST, 2, &root) || root->kind != JSON_OBJECT)
        return;
    for (size_t m = 0; m < words->count && m < MEMBERS_MOST; m++) {
        const struct schema_path *path = words->paths[m];
        if (path)
            add_member(texts, item, name_of(arena, path), text_at(arena, path, content));
        for (const struct json *one = root->first; one && !path; one = one->next)
            if (bytes_equal(one->name, words->members[m]))
                add_member(texts, item, one->name, text_of(arena, one));
    }
}

/* --- excerpts ------------------------------------------------------------------------------------ */

static struct bytes make_secret(struct arena *arena)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char random[SEARCH_MARKS_SECRET];
    char *secret = arena_alloc(arena, SEARCH_MARKS_SECRET);
    crypto_random(random, sizeof random);
    for (size_t i = 0; i < SEARCH_MARKS_SECRET; i++)
        secret[i] = digits[random[i] & 15];
    return (struct bytes){secret, SEARCH_MARKS_SECRET};
}

/* Texts of one item are beside each other. */
static void write_objects(struct arena *arena, const struct marked_texts *texts, const struct bytes *rows,
                          struct bytes secret, struct bytes *marks_r)
{
    for (size_t i = 0; i < texts->count;) {
        size_t item = texts->list[i].item;
        struct builder object = {0};
        builder_add_text(&object, "{");
        for (; i < texts->count && texts->list[i].item == item; i++) {
            size_t before = object.size;
            builder_add_bytes(&object, bytes_of(before > 1 ? "," : ""));
            json_add_string(&object, texts->list[i].member);
            builder_add_text(&object, ":");
            if (!search_marks_write(rows[i], secret, &object))
                object.size = before;
        }
        builder_add_text(&object, "}");
        marks_r[item] = builder_take(&object, arena);
    }
}

enum fault find_marks_make(struct attempt *attempt, const struct search *search,
                           const struct search_found *const *found, size_t count, struct bytes *marks_r)
{
    struct arena *arena = attempt->call->arena;
    struct marked_texts texts = {.list = ARENA_ARRAY(arena, struct marked_text, count * MEMBERS_MOST),
                                 .room = PAGE_MOST};
    struct bytes secret = make_secret(arena);
    for (size_t i = 0; i < count; i++) {
        marks_r[i] = BYTES("{}");
        if (!found[i]->item.raw)
            add_item(arena, &texts, search->marks, i, found[i]->item.content);
    }
    builder_add_text(&texts.array, "]");
    struct bytes *rows = ARENA_ARRAY(arena, struct bytes, texts.count);
    enum fault fault = FAULT_NONE;
    if (texts.count)
        fault = store_search_marks(documents_store(attempt->worker_context->documents), attempt->ns, arena,
                                   search->marks, builder_bytes(&texts.array), secret, texts.count, rows);
    builder_free(&texts.array);
    if (!fault)
        write_objects(arena, &texts, rows, secret, marks_r);
    return fault;
}
