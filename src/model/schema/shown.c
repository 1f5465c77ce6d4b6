/* shown: one pass over the declared properties of the item; its content is read only if there is one. */
#include "model/schema/shown.h"

#include "base/builder.h"
#include "edge/json/json.h"
#include "model/document/value.h"
#include "model/schema/schema_paths.h"

struct showing {
    struct arena *arena;
    const struct schema_class *class;
    struct bytes iclass, content;
    const struct json *root; /* of the content; NULL: not read yet */
    struct builder text;
    shown_hash *hash;
    void *context;
};

static void shown_read_content(struct showing *showing)
{
    static const struct json none;
    struct json *root;
    if (showing->root)
        return;
    showing->root = json_is_tree(showing->arena, showing->content, 128, 2, &root) ? root : &none;
}

static const struct json *member_of(struct showing *showing, struct bytes member)
{
    shown_read_content(showing);
    return json_member(showing->root, arena_copy(showing->arena, member.data, member.size));
}

static void shown_add_name(struct showing *showing, const char *prefix, struct bytes member)
{
    builder_printf(&showing->text, "%c\"%s%.*s\":", showing->text.size ? ',' : '{', prefix, (int)member.size,
                   member.data);
}

static struct bytes name_field(struct arena *arena, const struct schema_item *item, struct bytes member)
{
    return bytes_of(arena_printf(arena, "%.*s.%.*s", (int)item->name.size, item->name.data, (int)member.size,
                                 member.data));
}

/* As stampd.property_text(); null: a value by which no document is found. */
static void add_hash(struct showing *showing, struct bytes field, const struct json *value)
{
    struct bytes text;
    if (!value_of_json(showing->arena, value, &text)) {
        builder_add_text(&showing->text, "null");
        return;
    }
    json_add_string(&showing->text,
                    showing->hash(showing->context, showing->arena, showing->class->name, field, text));
}

static void add_hashes(struct showing *showing, struct bytes field, const struct json *value)
{
    if (value->kind != JSON_ARRAY) {
        add_hash(showing, field, value);
        return;
    }
    builder_add_text(&showing->text, "[");
    for (const struct json *one = value->first; one; one = one->next) {
        add_hash(showing, field, one);
        if (one->next)
            builder_add_text(&showing->text, ",");
    }
    builder_add_text(&showing->text, "]");
}

static void add_hashed(struct showing *showing, struct bytes member)
{
    const struct json *value = member_of(showing, member);
    if (!value || value->kind == JSON_NULL || value->kind == JSON_OBJECT)
        return;
    shown_add_name(showing, SHOWN_HASHED, member);
    add_hashes(showing, BYTES(""), value);
}

/* A field at a path is shown under its own name, which no property has: a list with all its values. */
static void add_followed(struct showing *showing, const struct schema_item *item,
                         const struct schema_field *field)
{
    size_t count;
    const struct json *const *values;
    if (!schema_paths_follow(showing->arena, field, showing->content, &values, &count))
        return;
    shown_add_name(showing, "", field->name);
    builder_add_bytes(&showing->text, bytes_of(field->is_list ? "[" : ""));
    for (size_t i = 0; i < count; i++) {
        builder_add_bytes(&showing->text, bytes_of(i ? "," : ""));
        if (field->type == FIELD_HASH)
            add_hash(showing, name_field(showing->arena, item, field->name), values[i]);
        else
            builder_add_bytes(&showing->text, values[i]->text);
    }
    builder_add_bytes(&showing->text, bytes_of(field->is_list ? "]" : ""));
}

static void add_hashed_field(struct showing *showing, const struct schema_item *item,
                             const struct schema_field *field)
{
    const struct json *value = member_of(showing, field->name);
    bool is_list = value && value->kind == JSON_ARRAY;
    if (!value || value->kind == JSON_NULL || value->kind == JSON_OBJECT || is_list != field->is_list ||
        (is_list && value->count > SCHEMA_ELEMENTS_MOST))
        return;
    shown_add_name(showing, "", field->name);
    add_hashes(showing, name_field(showing->arena, item, field->name), value);
}

static void add_end(struct showing *showing, struct bytes member)
{
    int64_t number;
    const struct json *value = member_of(showing, member);
    if (!value || !json_is_i64(value, &number))
        return;
    shown_add_name(showing, "", member);
    builder_add_i64(&showing->text, number);
}

/* An exported field as it is written. */
static void add_field(struct showing *showing, struct bytes member)
{
    const struct json *value = member_of(showing, member);
    if (!value || value->kind == JSON_NULL)
        return;
    shown_add_name(showing, "", member);
    builder_add_bytes(&showing->text, value->text);
}

static void add_fields(struct showing *showing, const struct schema_item *item)
{
    for (size_t i = 0; i < item->field_count; i++) {
        if (item->fields[i].path && (item->is_clear || item->fields[i].type == FIELD_HASH))
            add_followed(showing, item, &item->fields[i]);
        else if (item->fields[i].type == FIELD_HASH)
            add_hashed_field(showing, item, &item->fields[i]);
        else if (item->is_clear)
            add_field(showing, item->fields[i].name);
    }
}

/* The nth property by which documents of the class are found; NULL: there are no more. */
static const struct schema_property *property_at(const struct schema_class *class, size_t nth)
{
    for (size_t i = 0; i < class->collection_count; i++) {
        if (nth < class->collections[i].key_count)
            return &class->collections[i].keys[nth];
        nth -= class->collections[i].key_count;
    }
    for (size_t i = 0; i < class->unique_count; i++) {
        if (nth < class->uniques[i].key_count)
            return &class->uniques[i].keys[nth];
        nth -= class->uniques[i].key_count;
    }
    return NULL;
}

static bool shown_is_same(const struct schema_property *one, const struct schema_property *other)
{
    return one->item == other->item && bytes_equal(one->member, other->member);
}

/* The key of an item by whose keys documents are found: as a member without a name. */
static void add_key(struct showing *showing, struct bytes key)
{
    for (size_t i = 0; i < showing->class->collection_count; i++) {
        const struct schema_property *property = &showing->class->collections[i].keys[0];
        if (property->member.size || !bytes_equal(property->item->name, showing->iclass))
            continue;
        shown_add_name(showing, SHOWN_HASHED, BYTES(""));
        json_add_string(&showing->text, showing->hash(showing->context, showing->arena, showing->class->name,
                                                      BYTES(""), key));
        return;
    }
}

static void add_properties(struct showing *showing)
{
    const struct schema_class *class = showing->class;
    const struct schema_property *property;
    for (size_t nth = 0; (property = property_at(class, nth)); nth++) {
        size_t before = 0;
        while (before < nth && !shown_is_same(property_at(class, before), property))
            before++;
        if (before == nth && bytes_equal(property->item->name, showing->iclass))
            add_hashed(showing, property->member);
    }
    const struct schema_item *item = schema_find_item(class, showing->iclass);
    if (item && item->is_singleton)
        add_fields(showing, item);
    if (class->max_life.item && class->max_life.item == item &&
        !(item->is_clear && schema_find_field(item, class->max_life.member)))
        add_end(showing, class->max_life.member);
}

struct bytes shown_write(struct arena *arena, const struct schema_class *class, struct bytes iclass,
                         struct bytes key, bool is_raw, struct bytes content, shown_hash *hash, void *context)
{
    if (!class || is_raw || !content.data)
        return BYTES("");
    struct showing showing = {arena, class, iclass, content, .hash = hash, .context = context};
    if (key.size)
        add_key(&showing, key);
    else
        add_properties(&showing);
    if (showing.text.size)
        builder_add_text(&showing.text, "}");
    struct bytes text = builder_bytes(&showing.text);
    text = arena_keep(arena, text);
    builder_free(&showing.text);
    return text;
}

/* --- values --- */

/* One of several, which stand behind their sizes (value_join). */
static struct bytes take_part(struct bytes *rest)
{
    int64_t size = 0;
    struct bytes part = NO_BYTES;
    if (bytes_to_i64(bytes_cut(rest, ':'), &size) && size >= 0 && (size_t)size <= rest->size) {
        part = (struct bytes){rest->data, (size_t)size};
        *rest = (struct bytes){rest->data + size, rest->size - (size_t)size};
    }
    return part;
}

struct bytes shown_value(struct arena *arena, struct bytes class, struct bytes value, size_t count,
                         shown_hash *hash, void *context)
{
    if (count == 1)
        return hash(context, arena, class, BYTES(""), value);
    struct builder joined = {0};
    for (size_t i = 0; i < count; i++)
        value_join(&joined, hash(context, arena, class, BYTES(""), take_part(&value)));
    struct bytes whole = {arena_copy(arena, joined.data ? joined.data : "", joined.size), joined.size};
    builder_free(&joined);
    return whole;
}

struct bytes shown_field_value(struct arena *arena, const struct schema_class *class,
                               const struct schema_item *item, struct bytes member, struct bytes value,
                               shown_hash *hash, void *context)
{
    return hash(context, arena, class->name, name_field(arena, item, member), value);
}
