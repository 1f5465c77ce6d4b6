/* shown: one pass over the declared properties of the item; its content is read only if there is one. */
#include "model/shown.h"

#include "base/builder.h"
#include "edge/json.h"
#include "model/value.h"

struct showing {
    struct arena *arena;
    const struct schema_class *class;
    struct bytes iclass, content;
    const struct json *root; /* of the content; NULL: not read yet */
    struct builder text;
    shown_hash *hash;
    void *context;
};

static void read_content(struct showing *showing)
{
    static const struct json_limits limits = {.depth = 128, .tree_depth = 2};
    static const struct json none;
    struct json *root;
    struct json_problem problem;
    if (showing->root)
        return;
    showing->root =
        json_read(showing->arena, showing->content, &limits, &root, &problem) == FAULT_NONE ? root : &none;
}

static const struct json *member_of(struct showing *showing, struct bytes member)
{
    read_content(showing);
    return json_member(showing->root, arena_copy(showing->arena, member.data, member.size));
}

static void add_name(struct showing *showing, const char *prefix, struct bytes member)
{
    builder_printf(&showing->text, "%c\"%s%.*s\":", showing->text.size ? ',' : '{', prefix, (int)member.size,
                   member.data);
}

/* As stampd.property_text(); null: a value by which no document is found. */
static void add_hash(struct showing *showing, const struct json *value)
{
    bool is_text = value->kind == JSON_STRING || value->kind == JSON_NUMBER;
    if (!is_text && value->kind != JSON_TRUE && value->kind != JSON_FALSE) {
        builder_add_text(&showing->text, "null");
        return;
    }
    struct bytes text = value_of_member(showing->arena, is_text ? value->value : value->text);
    json_add_string(&showing->text,
                    showing->hash(showing->context, showing->arena, showing->class->name, text));
}

static void add_hashed(struct showing *showing, struct bytes member)
{
    const struct json *value = member_of(showing, member);
    if (!value || value->kind == JSON_NULL || value->kind == JSON_OBJECT)
        return;
    add_name(showing, SHOWN_HASHED, member);
    if (value->kind != JSON_ARRAY) {
        add_hash(showing, value);
        return;
    }
    builder_add_text(&showing->text, "[");
    for (const struct json *one = value->first; one; one = one->next) {
        add_hash(showing, one);
        if (one->next)
            builder_add_text(&showing->text, ",");
    }
    builder_add_text(&showing->text, "]");
}

static void add_end(struct showing *showing, struct bytes member)
{
    int64_t number;
    const struct json *value = member_of(showing, member);
    if (!value || !json_is_i64(value, &number))
        return;
    add_name(showing, "", member);
    builder_add_i64(&showing->text, number);
}

/* The exported fields as they are written. */
static void add_fields(struct showing *showing, const struct schema_item *item)
{
    for (size_t i = 0; i < item->field_count; i++) {
        const struct json *value = member_of(showing, item->fields[i].name);
        if (!value || value->kind == JSON_NULL)
            continue;
        add_name(showing, "", item->fields[i].name);
        builder_add_bytes(&showing->text, value->text);
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

static bool is_same(const struct schema_property *one, const struct schema_property *other)
{
    return one->item == other->item && bytes_equal(one->member, other->member);
}

static void add_properties(struct showing *showing)
{
    const struct schema_class *class = showing->class;
    const struct schema_property *property;
    for (size_t nth = 0; (property = property_at(class, nth)); nth++) {
        size_t before = 0;
        while (before < nth && !is_same(property_at(class, before), property))
            before++;
        if (before == nth && bytes_equal(property->item->name, showing->iclass))
            add_hashed(showing, property->member);
    }
    const struct schema_item *item = schema_find_item(class, showing->iclass);
    bool is_clear = item && item->is_clear && item->is_singleton;
    if (is_clear)
        add_fields(showing, item);
    if (class->max_life.item && class->max_life.item == item &&
        !(is_clear && schema_find_field(item, class->max_life.member)))
        add_end(showing, class->max_life.member);
}

struct bytes shown_write(struct arena *arena, const struct schema_class *class, struct bytes iclass,
                         struct bytes key, bool is_raw, struct bytes content, shown_hash *hash, void *context)
{
    if (!class || key.size || is_raw || !content.data)
        return BYTES("");
    struct showing showing = {arena, class, iclass, content, .hash = hash, .context = context};
    add_properties(&showing);
    if (showing.text.size)
        builder_add_text(&showing.text, "}");
    struct bytes text = builder_bytes(&showing.text);
    text = (struct bytes){arena_copy(arena, text.data, text.size), text.size};
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
        return hash(context, arena, class, value);
    struct builder joined = {0};
    for (size_t i = 0; i < count; i++)
        value_join(&joined, hash(context, arena, class, take_part(&value)));
    struct bytes whole = {arena_copy(arena, joined.data ? joined.data : "", joined.size), joined.size};
    builder_free(&joined);
    return whole;
}
