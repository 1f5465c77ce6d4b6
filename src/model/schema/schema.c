/* schema: lookups, names of types, and the canonical text. */
#include "model/schema/schema.h"

#include "edge/json/json.h"

/* --- lookups: lists are sorted by name ---------------------------------------------------------- */

/* The index of `name` in a list of structs that begin with their name; -1: not found. */
static ptrdiff_t schema_place_of(const void *list, size_t count, size_t size, struct bytes name)
{
    const char *base = list;
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = bytes_compare(*(const struct bytes *)(const void *)(base + middle * size), name);
        if (order == 0)
            return (ptrdiff_t)middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

const struct schema_class *schema_find_class(const struct schema *schema, struct bytes name)
{
    ptrdiff_t place =
        schema ? schema_place_of(schema->classes, schema->class_count, sizeof *schema->classes, name) : -1;
    return place < 0 ? NULL : &schema->classes[place];
}

const struct schema_item *schema_find_item(const struct schema_class *class, struct bytes name)
{
    ptrdiff_t place =
        class ? schema_place_of(class->items, class->item_count, sizeof *class->items, name) : -1;
    return place < 0 ? NULL : &class->items[place];
}

const struct schema_collection *schema_find_collection(const struct schema_class *class, struct bytes name)
{
    ptrdiff_t place =
        class ? schema_place_of(class->collections, class->collection_count, sizeof *class->collections, name)
              : -1;
    return place < 0 ? NULL : &class->collections[place];
}

const struct schema_field *schema_find_field(const struct schema_item *item, struct bytes name)
{
    ptrdiff_t place =
        item ? schema_place_of(item->fields, item->field_count, sizeof *item->fields, name) : -1;
    return place < 0 ? NULL : &item->fields[place];
}

const struct named_search *schema_find_search(const struct schema *schema, struct bytes name)
{
    ptrdiff_t place =
        schema ? schema_place_of(schema->searches, schema->search_count, sizeof *schema->searches, name) : -1;
    return place < 0 ? NULL : &schema->searches[place];
}

const char *schema_refusal(const struct schema *schema, struct bytes document_class, struct bytes item_class,
                           bool is_singleton, bool is_raw)
{
    const struct schema_class *class = schema_find_class(schema, document_class);
    const struct schema_item *item = schema_find_item(class, item_class);
    if (!class || (!item && class->is_open))
        return NULL;
    if (!item)
        return "The schema of the namespace declares no such class of items here.";
    if (item->is_singleton != is_singleton)
        return item->is_singleton ? "Items of this class have no key." : "Items of this class have a key.";
    if (item->is_raw != is_raw)
        return item->is_raw ? "Items of this class are raw text." : "Items of this class are JSON.";
    return NULL;
}

const char *schema_refuse_copy(const struct schema_item *target, bool is_open, bool is_raw)
{
    if (!target)
        return is_open ? NULL : "Documents of that class have no items of this class.";
    if (target->is_singleton)
        return "In documents of that class the item is a singleton; a copy has a key.";
    if (target->is_raw != is_raw)
        return "In documents of that class the item is of the other kind, JSON or raw text.";
    if (target->copies)
        return "In documents of that class the item is copied itself; a copy is not copied further.";
    return NULL;
}

/* --- names --------------------------------------------------------------------------------------- */

bool schema_is_field_name(struct bytes name)
{
    static const char *const columns[] = {"class", "id", "iclass", "key", "vop", "version", "content", "raw"};
    if (!name.size || name.size > SCHEMA_FIELD_NAME_MOST)
        return false;
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        if (bytes_equal(name, bytes_of(columns[i])))
            return false;
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && (i == 0 || !((c >= '0' && c <= '9') || c == '_')))
            return false;
    }
    return true;
}

static const char *const type_names[FIELD_TYPES][2] = {
    [FIELD_STRING] = {"string", "string[]"},
    [FIELD_LONG] = {"long", "long[]"},
    [FIELD_INT] = {"int", "int[]"},
    [FIELD_DOUBLE] = {"double", "double[]"},
    [FIELD_HASH] = {"hash", "hash[]"},
    [FIELD_FOLDED] = {"folded", "folded[]"},
    [FIELD_TEXT] = {"text", ""}, /* which only an object declares */
};

const char *schema_type_name(enum field_type type, bool is_list)
{
    return type_names[type][is_list];
}

bool schema_type_of(struct bytes name, enum field_type *type_r, bool *is_list_r)
{
    for (int type = 0; type < FIELD_TEXT; type++)
        for (int list = 0; list < 2; list++)
            if (bytes_equal(name, bytes_of(type_names[type][list]))) {
                *type_r = (enum field_type)type;
                *is_list_r = list;
                return true;
            }
    return false;
}

/* --- the canonical text -------------------------------------------------------------------------- */

/* Writes a member's name, preceded by a comma when needed. */
static void schema_add_name(struct builder *text, struct bytes name)
{
    if (text->data[text->size - 1] != '{')
        builder_add_text(text, ",");
    json_add_string(text, name);
    builder_add_text(text, ":");
}

static void add_flag(struct builder *text, const char *name, bool value)
{
    if (!value)
        return;
    schema_add_name(text, bytes_of(name));
    builder_add_text(text, "true");
}

static void schema_add_number(struct builder *text, const char *name, int64_t value, int64_t standard)
{
    if (value == standard)
        return;
    schema_add_name(text, bytes_of(name));
    builder_add_i64(text, value);
}

static void add_path(struct builder *text, const struct schema_property *property)
{
    builder_printf(text, "\"%.*s.%.*s\"", (int)property->item->name.size, property->item->name.data,
                   (int)property->member.size, property->member.data);
}

static void schema_add_keys(struct builder *text, const struct schema_property *keys, size_t count)
{
    schema_add_name(text, BYTES("key"));
    builder_add_text(text, "[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            builder_add_text(text, ",");
        add_path(text, &keys[i]);
    }
    builder_add_text(text, "]");
}

static void add_copies(struct builder *text, const struct schema_copies *copies)
{
    if (!copies)
        return;
    schema_add_name(text, BYTES("copies"));
    builder_add_text(text, "{\"to\":[");
    for (size_t i = 0; i < copies->count; i++) {
        if (i)
            builder_add_text(text, ",");
        json_add_string(text, copies->classes[i]);
    }
    builder_add_text(text, "]");
    if (!bytes_equal(copies->separator, BYTES("."))) {
        schema_add_name(text, BYTES("separator"));
        json_add_string(text, copies->separator);
    }
    builder_add_text(text, "}");
}

/* Without the white space between its values. */
static void add_content(struct builder *text, const struct schema_item *item)
{
    struct bytes content = item->content_text;
    bool is_string = false;
    if (!item->content)
        return;
    schema_add_name(text, BYTES("content"));
    for (size_t i = 0; i < content.size; i++) {
        char c = content.data[i];
        if (is_string && c == '\\') {
            builder_add(text, content.data + i++, 1);
        } else if (c == '"') {
            is_string = !is_string;
        } else if (!is_string && (c == ' ' || c == '\n' || c == '\r' || c == '\t')) {
            continue;
        }
        builder_add(text, content.data + i, 1);
    }
}

/* ["address","city"]. */
static void schema_add_list(const struct schema_path *path, struct builder *text)
{
    for (size_t i = 0; i < path->count; i++) {
        builder_add_bytes(text, bytes_of(i ? "," : "["));
        json_add_string(text, path->members[i]);
    }
    builder_add_text(text, "]");
}

static void add_text(struct builder *text, const struct schema_text *words)
{
    for (size_t i = 0; i < words->count; i++) {
        builder_add_bytes(text, bytes_of(i ? "," : "{\"text\":["));
        if (words->paths[i])
            schema_add_list(words->paths[i], text);
        else
            json_add_string(text, words->members[i]);
    }
    json_add_text(text, "],\"language\":", words->language);
    builder_add_text(text, "}");
}

static void add_field_at(struct builder *text, const struct schema_field *field)
{
    builder_printf(text, "{\"type\":\"%s\"", schema_type_name(field->type, field->is_list));
    if (field->path) {
        builder_add_text(text, ",\"at\":");
        schema_add_list(field->path, text);
    }
    if (field->collate.data)
        json_add_text(text, ",\"collate\":", field->collate);
    builder_add_text(text, "}");
}

static void schema_add_items(struct builder *text, const struct schema_class *class)
{
    schema_add_name(text, BYTES("items"));
    builder_add_text(text, "{");
    for (const struct schema_item *item = class->items; item < class->items + class->item_count; item++) {
        schema_add_name(text, item->name);
        builder_add_text(text, "{");
        add_flag(text, "singleton", item->is_singleton);
        add_flag(text, "raw", item->is_raw);
        add_flag(text, "clear", item->is_clear);
        if (item->field_count) {
            schema_add_name(text, BYTES("fields"));
            builder_add_text(text, "{");
            for (size_t i = 0; i < item->field_count; i++) {
                schema_add_name(text, item->fields[i].name);
                if (item->fields[i].text)
                    add_text(text, item->fields[i].text);
                else if (item->fields[i].path || item->fields[i].collate.data)
                    add_field_at(text, &item->fields[i]);
                else
                    builder_printf(text, "\"%s\"",
                                   schema_type_name(item->fields[i].type, item->fields[i].is_list));
            }
            builder_add_text(text, "}");
        }
        if (item->index_count) {
            schema_add_name(text, BYTES("indexes"));
            for (size_t i = 0; i < item->index_count; i++) {
                builder_add(text, i ? "," : "[", 1);
                schema_index_write(text, &item->indexes[i]);
            }
            builder_add_text(text, "]");
        }
        add_copies(text, item->copies);
        add_content(text, item);
        builder_add_text(text, "}");
    }
    builder_add_text(text, "}");
}

static void add_item_keys(struct builder *text, const struct schema_item *item)
{
    schema_add_name(text, BYTES("keys"));
    builder_printf(text, "\"%.*s\"", (int)item->name.size, item->name.data);
}

static void add_collections(struct builder *text, const struct schema_class *class)
{
    if (!class->collection_count)
        return;
    schema_add_name(text, BYTES("collections"));
    builder_add_text(text, "{");
    for (size_t i = 0; i < class->collection_count; i++) {
        const struct schema_collection *collection = &class->collections[i];
        schema_add_name(text, collection->name);
        builder_add_text(text, "{");
        bool is_by_keys = !collection->keys[0].member.size;
        if (is_by_keys)
            add_item_keys(text, collection->keys[0].item);
        else
            schema_add_keys(text, collection->keys, collection->key_count);
        add_flag(text, "list", collection->is_list && !is_by_keys);
        add_flag(text, "mutable", collection->is_mutable);
        builder_add_text(text, "}");
    }
    builder_add_text(text, "}");
}

static void add_uniques(struct builder *text, const struct schema_class *class)
{
    if (!class->unique_count)
        return;
    schema_add_name(text, BYTES("unique"));
    builder_add_text(text, "{");
    for (size_t i = 0; i < class->unique_count; i++) {
        schema_add_name(text, class->uniques[i].name);
        builder_add_text(text, "{");
        schema_add_keys(text, class->uniques[i].keys, class->uniques[i].key_count);
        add_flag(text, "global", class->uniques[i].is_global);
        builder_add_text(text, "}");
    }
    builder_add_text(text, "}");
}

/* Writes the changes of one kind, as members or elements, as `kind` requires. */
static void add_changes(struct builder *text, const struct schema_mutation *mutation, int kind)
{
    static const char *const names[] = {"rename", "default", "drop"};
    bool is_first = true;
    for (size_t i = 0; i < mutation->change_count; i++) {
        const struct schema_change *change = &mutation->changes[i];
        if ((int)change->kind != kind)
            continue;
        if (is_first) {
            schema_add_name(text, bytes_of(names[kind]));
            builder_add(text, kind == CHANGE_DROP ? "[" : "{", 1);
        }
        if (kind == CHANGE_DROP) {
            if (!is_first)
                builder_add_text(text, ",");
            json_add_string(text, change->member);
        } else {
            schema_add_name(text, change->member);
            if (kind == CHANGE_RENAME)
                json_add_string(text, change->value);
            else
                builder_add_bytes(text, change->value);
        }
        is_first = false;
    }
    if (!is_first)
        builder_add(text, kind == CHANGE_DROP ? "]" : "}", 1);
}

static void add_mutations(struct builder *text, const struct schema_class *class)
{
    if (!class->mutation_count)
        return;
    schema_add_name(text, BYTES("mutations"));
    builder_add_text(text, "[");
    for (size_t i = 0; i < class->mutation_count; i++) {
        const struct schema_mutation *mutation = &class->mutations[i];
        if (i)
            builder_add_text(text, ",");
        builder_printf(text, "{\"to\":%lld,\"item\":", (long long)mutation->to);
        json_add_string(text, mutation->item->name);
        for (int kind = CHANGE_RENAME; kind <= CHANGE_DROP; kind++)
            add_changes(text, mutation, kind);
        builder_add_text(text, "}");
    }
    builder_add_text(text, "]");
}

static void add_thumbnails(struct builder *text, const struct schema_class *class)
{
    if (!class->thumbnail_count)
        return;
    schema_add_name(text, BYTES("thumbnails"));
    builder_add_text(text, "{");
    for (size_t i = 0; i < class->thumbnail_count; i++) {
        const struct schema_thumbnail *thumbnail = &class->thumbnails[i];
        schema_add_name(text, thumbnail->name);
        builder_printf(text, "{\"width\":%lld,\"height\":%lld}", (long long)thumbnail->width,
                       (long long)thumbnail->height);
    }
    builder_add_text(text, "}");
}

static void add_class(struct builder *text, const struct schema_class *class)
{
    schema_add_name(text, class->name);
    builder_add_text(text, "{");
    schema_add_number(text, "release", class->release, 1);
    add_flag(text, "open", class->is_open);
    add_flag(text, "encryptedIds", class->encrypts_ids);
    schema_add_items(text, class);
    add_collections(text, class);
    add_uniques(text, class);
    schema_add_number(text, "zombieDays", class->zombie_days, 0);
    if (class->max_life.item) {
        schema_add_name(text, BYTES("maxLife"));
        add_path(text, &class->max_life);
    }
    add_mutations(text, class);
    add_thumbnails(text, class);
    builder_add_text(text, "}");
}

/* Names and types, in their order. */
static void add_values(struct builder *text, const char *name, const struct named_search_value *values,
                       size_t count)
{
    if (!count)
        return;
    schema_add_name(text, bytes_of(name));
    for (size_t i = 0; i < count; i++)
        builder_printf(text, "%s[\"%.*s\",\"%s\"]", i ? "," : "[", (int)values[i].name.size,
                       values[i].name.data, named_search_type_name(&values[i]));
    builder_add_text(text, "]");
}

static void add_searches(struct builder *text, const struct schema *schema)
{
    builder_add_text(text, ",\"searches\":{");
    for (size_t i = 0; i < schema->search_count; i++) {
        const struct named_search *search = &schema->searches[i];
        schema_add_name(text, search->name);
        builder_add_text(text, "{");
        schema_add_name(text, BYTES("class"));
        json_add_string(text, search->class);
        add_values(text, "params", search->params, search->param_count);
        add_values(text, "result", search->columns, search->column_count);
        schema_add_name(text, BYTES("sql"));
        json_add_string(text, search->sql);
        builder_add_text(text, "}");
    }
    builder_add_text(text, "}");
}

void schema_write(const struct schema *schema, struct builder *text)
{
    builder_add_text(text, "{\"classes\":{");
    for (size_t i = 0; i < schema->class_count; i++)
        add_class(text, &schema->classes[i]);
    builder_add_text(text, "}");
    if (schema->search_count)
        add_searches(text, schema);
    builder_add_text(text, "}");
}

/* --- schema index --- */

static const char *sign_of(const struct schema_index *index, size_t field)
{
    return index->is_likeness ? "~" : index->fields[field].is_descending ? "-" : "";
}

void schema_index_write(struct builder *text, const struct schema_index *index)
{
    for (size_t i = 0; i < index->count; i++)
        builder_printf(text, "%s\"%s%.*s\"", i ? "," : "[", sign_of(index, i),
                       (int)index->fields[i].name.size, index->fields[i].name.data);
    builder_add_text(text, "]");
}

bool schema_index_is_same(const struct schema_index *one, const struct schema_index *other)
{
    if (one->count != other->count)
        return false;
    bool is_reversed = one->fields[0].is_descending != other->fields[0].is_descending;
    for (size_t i = 0; i < one->count; i++)
        if (!bytes_equal(one->fields[i].name, other->fields[i].name) ||
            (one->fields[i].is_descending != other->fields[i].is_descending) != is_reversed)
            return false;
    return true;
}

struct bytes schema_index_word(struct arena *arena, const struct schema_index *index)
{
    struct builder text = {0};
    for (size_t i = 0; i < index->count; i++)
        builder_printf(&text, "%s%s%.*s", i ? "," : "", sign_of(index, i), (int)index->fields[i].name.size,
                       index->fields[i].name.data);
    return builder_take(&text, arena);
}
