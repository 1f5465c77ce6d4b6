/* schema_searches: {"searches":{"newest":{"class":"Post","params":[["room","string"]],"result":[["id",
 * "string"]],"sql":"select …"}}}.  What PostgreSQL thinks of the text is asked when the schema is applied. */
#include "model/schema/schema_searches.h"

#include <stdlib.h>
#include <string.h>

#include "edge/json/json.h"
#include "model/document/item.h"
#include "model/schema/schema_paths.h"

static int compare_searches(const void *a, const void *b)
{
    const struct named_search *one = a, *other = b;
    return bytes_compare(one->name, other->name);
}

/* Letters and digits: it is part of names in the database. */
static bool is_search_name(struct bytes name)
{
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return name.size > 0 && name.size <= 32;
}

static bool is_value_name(struct bytes name)
{
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && (i == 0 || !((c >= '0' && c <= '9') || c == '_')))
            return false;
    }
    return name.size > 0 && name.size <= SCHEMA_FIELD_NAME_MOST;
}

static bool read_value(struct schema_reader *reader, struct schema_node node, bool is_param,
                       struct named_search_value *value)
{
    const struct json *pair = node.value;
    bool is_pair = pair->kind == JSON_ARRAY && !pair->is_shallow && pair->count == 2 &&
                   pair->first->kind == JSON_STRING && pair->first->next->kind == JSON_STRING;
    if (!is_pair || !is_value_name(pair->first->value))
        return schema_reader_refuse(reader, node.path,
                                    "A list of a name and a type is expected; a name is a letter, then up to "
                                    "25 letters, digits and '_'.");
    value->name = pair->first->value;
    return named_search_type_of(pair->first->next->value, is_param, value) ||
           schema_reader_refuse(reader, node.path,
                                is_param
                                    ? "A type of parameters is expected: string, long, int, double, boolean, "
                                      "account, string[] or long[]."
                                    : "A type of columns is expected: string, long, int, double, boolean or "
                                      "json.");
}

/* Names and types, in their order; absent: none. */
static bool read_values(struct schema_reader *reader, struct schema_node search_node, const char *name,
                        size_t most, struct named_search_value **values_r, size_t *count_r)
{
    const struct json *member = json_member(search_node.value, name);
    bool is_param = strcmp(name, "params") == 0;
    *count_r = 0;
    if (!member)
        return true;
    struct schema_node node = schema_reader_member(reader, search_node, member);
    if (member->kind != JSON_ARRAY || member->is_shallow || member->count > most)
        return schema_reader_refuse(
            reader, node.path,
            arena_printf(reader->arena, "A list of at most %zu pairs of a name and a type is expected.",
                         most));
    struct named_search_value *values = ARENA_ARRAY(reader->arena, struct named_search_value, member->count);
    for (const struct json *one = member->first; one; one = one->next) {
        struct schema_node at = {arena_printf(reader->arena, "%s[%zu]", node.path, *count_r), one};
        if (!read_value(reader, at, is_param, &values[*count_r]))
            return false;
        for (size_t i = 0; i < *count_r; i++)
            if (bytes_equal(values[i].name, values[*count_r].name))
                return schema_reader_refuse(reader, at.path, "Each name stands once.");
        ++*count_r;
    }
    *values_r = values;
    return true;
}

static bool read_text(struct schema_reader *reader, struct schema_node search_node,
                      struct named_search *search)
{
    const struct json *sql = json_member(search_node.value, "sql");
    if (!sql || sql->kind != JSON_STRING || !sql->value.size || sql->value.size > NAMED_SEARCH_SQL_MOST)
        return schema_reader_refuse(
            reader, search_node.path,
            "The member sql is expected: one select, a text of 1 to 16384 bytes, without a semicolon.");
    search->sql = sql->value;
    return true;
}

static bool read_search(struct schema_reader *reader, struct schema_node node, struct named_search *search)
{
    static const char *const members[] = {"class", "params", "result", "sql", NULL};
    struct named_search_value *params = NULL, *columns = NULL;
    search->name = node.value->name;
    if (!is_search_name(search->name))
        return schema_reader_refuse(reader, node.path,
                                    "A name of a search is a letter, then up to 31 letters and digits.");
    if (!schema_reader_is_object(reader, node, "An object that declares a search is expected.") ||
        !schema_reader_has_only(reader, node, members) || !read_text(reader, node, search) ||
        !read_values(reader, node, "params", NAMED_SEARCH_PARAMS_MOST, &params, &search->param_count) ||
        !read_values(reader, node, "result", NAMED_SEARCH_COLUMNS_MOST, &columns, &search->column_count))
        return false;
    search->params = params;
    search->columns = columns;
    const struct json *class = json_member(node.value, "class");
    if (!class || class->kind != JSON_STRING || !item_is_class_name(class->value))
        return schema_reader_refuse(reader, node.path,
                                    "The member class is expected: the class of documents of which a caller "
                                    "must be able to read all.");
    search->class = class->value;
    return search->column_count ||
           schema_reader_refuse(reader, node.path,
                                "The member result is expected: the columns of a row, names and types.");
}

bool schema_searches_read(struct schema_reader *reader, struct schema_node root, struct schema *schema)
{
    const struct json *member = json_member(root.value, "searches");
    if (!member)
        return true;
    struct schema_node node = schema_reader_member(reader, root, member);
    if (!schema_reader_is_list(reader, node, NAMED_SEARCHES_MOST,
                               "An object of names and searches is expected."))
        return false;
    struct named_search *searches = ARENA_ARRAY(reader->arena, struct named_search, member->count);
    for (const struct json *one = member->first; one; one = one->next)
        if (!read_search(reader, schema_reader_member(reader, node, one), &searches[schema->search_count++]))
            return false;
    qsort(searches, schema->search_count, sizeof *searches, compare_searches);
    schema->searches = searches;
    return true;
}

/* The languages are those that PostgreSQL has stemmers for. */

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

/* A member of the content, or a list of names that leads to one within. */
static bool read_member(struct schema_reader *reader, struct schema_node node, struct schema_text *words)
{
    if (node.value->kind == JSON_ARRAY) {
        struct schema_path *path = ARENA_NEW(reader->arena, struct schema_path);
        if (!schema_paths_read_list(reader, node, path))
            return false;
        for (size_t i = 0; i < words->count; i++)
            if (words->paths[i] && schema_paths_are_same(words->paths[i], path))
                return schema_reader_refuse(reader, node.path, "Each member is named once.");
        words->paths[words->count] = path;
        words->members[words->count++] = path->members[0];
        return true;
    }
    if (node.value->kind != JSON_STRING || !schema_is_field_name(node.value->value))
        return schema_reader_refuse(
            reader, node.path, "The name of a member is expected: a letter, then letters, digits and '_'.");
    for (size_t i = 0; i < words->count; i++)
        if (!words->paths[i] && bytes_equal(words->members[i], node.value->value))
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
        are_same = bytes_equal(one->members[i], other->members[i]) &&
                   schema_paths_are_same(one->paths[i], other->paths[i]);
    return are_same;
}
