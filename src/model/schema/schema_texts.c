/* schema_texts: the languages are those that PostgreSQL has stemmers for. */
#include "model/schema/schema_texts.h"

#include "edge/json/json.h"

static bool read_language(struct schema_reader *reader, struct schema_node node, struct schema_text *words)
{
    static const char *const languages[] = {
        "simple",  "arabic",     "armenian", "basque",    "catalan",    "danish",    "dutch",      "english",
        "finnish", "french",     "german",   "greek",     "hindi",      "hungarian", "indonesian", "irish",
        "italian", "lithuanian", "nepali",   "norwegian", "portuguese", "romanian",  "russian",    "serbian",
        "spanish", "swedish",    "tamil",    "turkish",   "yiddish"};
    const struct json *language = json_member(node.value, "language");
    words->language = BYTES("simple");
    if (!language)
        return true;
    for (size_t i = 0; i < COUNT_OF(languages); i++)
        if (language->kind == JSON_STRING && bytes_equal(language->value, bytes_of(languages[i]))) {
            words->language = language->value;
            return true;
        }
    return schema_reader_refuse(reader, schema_reader_member(reader, node, language).path,
                                "A language of PostgreSQL is expected, as english, or simple.");
}

static bool read_member(struct schema_reader *reader, struct schema_node node, struct schema_text *words)
{
    if (node.value->kind != JSON_STRING || !schema_is_field_name(node.value->value))
        return schema_reader_refuse(
            reader, node.path, "The name of a member is expected: a letter, then letters, digits and '_'.");
    for (size_t i = 0; i < words->count; i++)
        if (bytes_equal(words->members[i], node.value->value))
            return schema_reader_refuse(reader, node.path, "Each member is named once.");
    words->members[words->count++] = node.value->value;
    return true;
}

bool schema_texts_read(struct schema_reader *reader, struct schema_node node, struct schema_field *field)
{
    static const char *const names[] = {"text", "language", NULL};
    struct schema_text *words = ARENA_NEW(reader->arena, struct schema_text);
    const struct json *list = json_member(node.value, "text");
    if (!schema_reader_has_only(reader, node, names))
        return false;
    if (!list || list->kind != JSON_ARRAY || list->is_shallow || !list->count ||
        list->count > SCHEMA_TEXT_MEMBERS_MOST)
        return schema_reader_refuse(reader, node.path,
                                    "The member text is expected: a list of 1 to 4 members of the content.");
    for (const struct json *one = list->first; one; one = one->next) {
        struct schema_node at = {arena_printf(reader->arena, "%s.text[%zu]", node.path, words->count), one};
        if (!read_member(reader, at, words))
            return false;
    }
    field->type = FIELD_TEXT;
    field->text = words;
    return read_language(reader, node, words);
}

bool schema_texts_are_same(const struct schema_text *one, const struct schema_text *other)
{
    if (!one || !other)
        return one == other;
    bool are_same = one->count == other->count && bytes_equal(one->language, other->language);
    for (size_t i = 0; are_same && i < one->count; i++)
        are_same = bytes_equal(one->members[i], other->members[i]);
    return are_same;
}
