/* csv_mapping: read once, bound to a header once, applied to each record. */
#include "control/foreign/csv/csv_mapping.h"

#include "control/foreign/foreign_mapping.h"
#include "model/document/item.h"

enum { SHOWN = 60 };

enum csv_type { CSV_STRING, CSV_NUMBER, CSV_BOOLEAN, CSV_JSON };
static const char *const types[] = {"string", "number", "boolean", "json"};

struct csv_column {
    struct bytes name;       /* in the header */
    struct bytes class, key; /* of the item */
    struct bytes field;
    enum csv_type type;
    size_t index;    /* in the record */
    size_t next;     /* column of the same item, in the mapping; 0: none */
    bool is_written; /* with a column before it, of the same item */
};

struct csv_mapping {
    struct arena *arena;
    const struct settings *settings;
    struct bytes class, id, item, null; /* id: a column; NO_BYTES: the first.  null NO_BYTES: none */
    char separator;                     /* 0: none */
    const struct json *listed;          /* columns; NULL: all but the id */
    struct csv_column *columns;
    size_t count, width, id_index;
};

/* --- reading --- */

static const char *csv_mapping_read_text(struct csv_mapping *mapping, struct bytes text)
{
    static const struct json_limits limits = {.depth = 4, .tree_depth = 4, .nodes = 5 * CSV_FIELDS_MOST};
    struct json_problem problem;
    struct json *root;
    struct bytes separator = NO_BYTES;
    if (json_read(mapping->arena, text, &limits, &root, &problem) != FAULT_NONE)
        return arena_printf(mapping->arena, "%s, at byte %zu", problem.what, problem.offset + 1);
    if (root->kind != JSON_OBJECT)
        return "expected an object";
    const char *unknown =
        foreign_mapping_unknown(mapping->arena, root, "class id item separator null columns");
    if (unknown)
        return unknown;
    mapping->listed = json_member(root, "columns");
    if (!foreign_mapping_text(json_member(root, "class"), &mapping->class) ||
        !foreign_mapping_text(json_member(root, "id"), &mapping->id) ||
        !foreign_mapping_text(json_member(root, "item"), &mapping->item) ||
        !foreign_mapping_text(json_member(root, "separator"), &separator) ||
        !foreign_mapping_text(json_member(root, "null"), &mapping->null))
        return "expected texts as \"class\", \"id\", \"item\", \"separator\" and \"null\"";
    if (mapping->listed && mapping->listed->kind != JSON_OBJECT)
        return "expected an object as \"columns\"";
    if (separator.data && (separator.size != 1 || !csv_record_is_separator(separator.data[0])))
        return "expected as \"separator\" one of comma, semicolon, tab, colon, blank or |";
    mapping->separator = separator.data ? separator.data[0] : 0;
    return NULL;
}

struct csv_mapping *csv_mapping_read(struct arena *arena, const struct settings *settings, struct bytes text,
                                     const char *class, const char *id, const char **problem_r)
{
    struct csv_mapping *mapping = ARENA_ARRAY(arena, struct csv_mapping, 1);
    *mapping = (struct csv_mapping){.arena = arena, .settings = settings, .item = BYTES("Main")};
    *problem_r = text.data ? csv_mapping_read_text(mapping, text) : NULL;
    if (class)
        mapping->class = bytes_of(class);
    if (id)
        mapping->id = bytes_of(id);
    if (!*problem_r && !(mapping->class.data && item_is_class_name(mapping->class)))
        *problem_r = "expected as the class of documents a capital, then up to 15 letters and digits";
    return *problem_r ? NULL : mapping;
}

char csv_mapping_separator(const struct csv_mapping *mapping)
{
    return mapping->separator;
}

/* --- binding --- */

static const char *csv_mapping_complain(struct arena *arena, struct bytes column, const char *problem)
{
    int size = (int)(column.size < SHOWN ? column.size : SHOWN);
    return arena_printf(arena, "column \"%.*s\": %s", size, column.data, problem);
}

static size_t csv_mapping_find(const struct csv_record *header, struct bytes name)
{
    size_t i = 0;
    while (i < header->count && !bytes_equal(header->fields[i], name))
        i++;
    return i;
}

static bool set_type(struct csv_column *column, struct bytes name)
{
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (bytes_equal(name, bytes_of(types[i]))) {
            column->type = (enum csv_type)i;
            return true;
        }
    return false;
}

static const char *set_column(struct csv_mapping *mapping, const struct csv_record *header,
                              const struct json *listed, struct bytes name)
{
    struct csv_column *column = &mapping->columns[mapping->count++];
    struct csv_column *last = NULL; /* of the same item */
    struct bytes item = mapping->item, type = BYTES("string");
    *column = (struct csv_column){.name = name, .field = name, .index = csv_mapping_find(header, name)};
    if (column->index == header->count)
        return csv_mapping_complain(mapping->arena, name, "it is not in the header");
    if (listed) {
        const char *unknown = listed->kind == JSON_OBJECT
                                  ? foreign_mapping_unknown(mapping->arena, listed, "item field type")
                                  : "expected an object {\"item\",\"field\",\"type\"}";
        if (unknown)
            return csv_mapping_complain(mapping->arena, name, unknown);
        if (!foreign_mapping_text(json_member(listed, "item"), &item) ||
            !foreign_mapping_text(json_member(listed, "field"), &column->field) ||
            !foreign_mapping_text(json_member(listed, "type"), &type))
            return csv_mapping_complain(mapping->arena, name,
                                        "expected texts as \"item\", \"field\" and \"type\"");
    }
    if (!set_type(column, type))
        return csv_mapping_complain(mapping->arena, name,
                                    "expected as \"type\" string, number, boolean or json");
    if (!foreign_mapping_item(item, mapping->settings, &column->class, &column->key))
        return csv_mapping_complain(mapping->arena, name,
                                    "expected as \"item\" a class of items, or class/key");
    for (size_t i = 0; i + 1 < mapping->count; i++) {
        const struct csv_column *other = &mapping->columns[i];
        if (item_compare(other->class, other->key, column->class, column->key) != 0)
            continue;
        column->is_written = true;
        last = &mapping->columns[i];
        if (bytes_equal(other->field, column->field))
            return csv_mapping_complain(mapping->arena, name,
                                        "another column becomes this field of the item");
    }
    if (last)
        last->next = mapping->count - 1;
    return NULL;
}

static const char *bind_all(struct csv_mapping *mapping, const struct csv_record *header)
{
    const char *problem = NULL;
    for (size_t i = 0; i < header->count && !problem; i++)
        if (i != mapping->id_index)
            problem = set_column(mapping, header, NULL, header->fields[i]);
    return problem;
}

static const char *bind_listed(struct csv_mapping *mapping, const struct csv_record *header)
{
    const char *problem = NULL;
    for (const struct json *member = mapping->listed->first; member && !problem; member = member->next)
        problem = set_column(mapping, header, member, member->name);
    return problem;
}

bool csv_mapping_bind(struct csv_mapping *mapping, const struct csv_record *header, const char **problem_r)
{
    size_t listed = mapping->listed ? mapping->listed->count : 0;
    mapping->width = header->count;
    mapping->id_index = mapping->id.data ? csv_mapping_find(header, mapping->id) : 0;
    *problem_r = NULL;
    for (size_t i = 0; i < header->count && !*problem_r; i++)
        if (csv_mapping_find(header, header->fields[i]) != i)
            *problem_r =
                csv_mapping_complain(mapping->arena, header->fields[i], "it stands twice in the header");
    if (!*problem_r && mapping->id_index == header->count)
        *problem_r = csv_mapping_complain(mapping->arena, mapping->id, "it is not in the header");
    if (*problem_r)
        return false;
    mapping->columns =
        ARENA_ARRAY(mapping->arena, struct csv_column, (listed > header->count ? listed : header->count) + 1);
    *problem_r = mapping->listed ? bind_listed(mapping, header) : bind_all(mapping, header);
    return !*problem_r;
}

/* --- writing --- */

/* Is it one JSON text of this type, without blanks around it? */
static bool csv_mapping_is_json(const struct csv_mapping *mapping, struct arena *arena, struct bytes text,
                                enum csv_type type)
{
    struct json *root;
    return json_is_tree(arena, text, (int)mapping->settings->limit_depth - 1, 0, &root) &&
           (type == CSV_JSON || (root->kind == JSON_NUMBER && root->text.size == text.size));
}

static const char *csv_mapping_add_value(const struct csv_mapping *mapping, struct arena *arena,
                                         struct bytes text, enum csv_type type, struct builder *json)
{
    bool is_one = bytes_equal(text, BYTES("1")), is_zero = bytes_equal(text, BYTES("0"));
    if ((mapping->null.data && bytes_equal(text, mapping->null)) || (!text.size && type != CSV_STRING))
        builder_add_text(json, "null");
    else if (type == CSV_STRING)
        json_add_string(json, text);
    else if (type == CSV_BOOLEAN && (is_one || bytes_equal(text, BYTES("true"))))
        builder_add_text(json, "true");
    else if (type == CSV_BOOLEAN && (is_zero || bytes_equal(text, BYTES("false"))))
        builder_add_text(json, "false");
    else if (type != CSV_BOOLEAN && csv_mapping_is_json(mapping, arena, text, type))
        builder_add_bytes(json, text);
    else
        return arena_printf(arena, "expected %s, not \"%.*s\"",
                            type == CSV_NUMBER    ? "a number"
                            : type == CSV_BOOLEAN ? "true, false, 1 or 0"
                                                  : "a JSON text",
                            (int)(text.size < SHOWN ? text.size : SHOWN), text.data);
    return NULL;
}

/* The content of the item whose first column is the one at `first`. */
static const char *csv_mapping_compose(const struct csv_mapping *mapping, struct arena *arena, size_t first,
                                       const struct csv_record *record, struct builder *json)
{
    builder_add_text(json, "{");
    for (size_t i = first, next = 1; next; i = next) {
        const struct csv_column *column = &mapping->columns[i];
        next = column->next;
        if (i != first)
            builder_add_text(json, ",");
        json_add_string(json, column->field);
        builder_add_text(json, ":");
        const char *problem =
            csv_mapping_add_value(mapping, arena, record->fields[column->index], column->type, json);
        if (problem)
            return csv_mapping_complain(arena, column->name, problem);
    }
    builder_add_text(json, "}");
    return NULL;
}

static const char *csv_mapping_add_items(const struct csv_mapping *mapping, struct arena *arena,
                                         const struct csv_record *record, int64_t number,
                                         struct builder *lines)
{
    struct builder json = {0};
    const char *problem = NULL;
    struct foreign_size size = {0};
    for (size_t i = 0; i < mapping->count && !problem; i++) {
        const struct csv_column *column = &mapping->columns[i];
        if (column->is_written)
            continue;
        builder_clear(&json, 1 << 20);
        problem = csv_mapping_compose(mapping, arena, i, record, &json);
        const struct archive_item item = {column->class, column->key,          number,
                                          number,        builder_bytes(&json), false};
        if (!problem)
            archive_line_add_item(lines, &item, size.items == 0);
        foreign_mapping_count(&size, &item);
    }
    builder_free(&json);
    return problem ? problem : foreign_mapping_over(arena, mapping->settings, &size);
}

struct bytes csv_mapping_id(const struct csv_mapping *mapping, const struct csv_record *record)
{
    return record->fields[mapping->id_index];
}

bool csv_mapping_write(const struct csv_mapping *mapping, struct arena *arena,
                       const struct csv_record *record, int64_t number, struct builder *lines,
                       const char **problem_r)
{
    size_t before = lines->size;
    if (record->count != mapping->width) {
        *problem_r = arena_printf(arena, "expected %zu fields, as in the header, not %zu", mapping->width,
                                  record->count);
        return false;
    }
    const struct archive_header header = {mapping->class, csv_mapping_id(mapping, record), number, number,
                                          number};
    *problem_r = foreign_mapping_wrong_id(arena, mapping->settings, header.id);
    if (*problem_r)
        return false;
    archive_line_begin(lines, &header);
    *problem_r = csv_mapping_add_items(mapping, arena, record, number, lines);
    archive_line_end(lines, &header);
    if (*problem_r)
        lines->size = before;
    return !*problem_r;
}
