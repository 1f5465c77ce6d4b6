/* firestore_key: keys and values have the same path with other numbers. */
#include "control/foreign/firestore/firestore_key.h"

#include <inttypes.h>
#include <string.h>

#include "control/foreign/firestore/firestore_wire.h"

enum { LEVELS_MOST = 100, PATH = 14, NAMESPACE = 20 };

static const char wrong_key[] = "expected a key with the path of a document";

/* The numbers of the fields of an element of a path. */
struct numbers {
    uint32_t type, id, name;
};

struct firestore_element {
    struct bytes type, name;
    int64_t id;
    bool has_id;
};

bool firestore_key_is_text(struct bytes text)
{
    return bytes_is_utf8(text) && !(text.size && memchr(text.data, 0, text.size));
}

static bool firestore_key_is_name(struct bytes text)
{
    return text.size && !memchr(text.data, '/', text.size) && firestore_key_is_text(text);
}

static const char *firestore_key_read_element(struct bytes group, const struct numbers *numbers,
                                              struct firestore_element *element_r)
{
    struct firestore_field field;
    enum firestore_wire_event event;
    *element_r = (struct firestore_element){0};
    while ((event = firestore_wire_next(&group, &field)) == FIRESTORE_WIRE_FIELD)
        if (firestore_wire_is(&field, numbers->type, FIRESTORE_BYTES)) {
            element_r->type = field.text;
        } else if (firestore_wire_is(&field, numbers->name, FIRESTORE_BYTES)) {
            element_r->name = field.text;
        } else if (firestore_wire_is(&field, numbers->id, FIRESTORE_VARINT)) {
            element_r->id = (int64_t)field.value;
            element_r->has_id = true;
        }
    if (event != FIRESTORE_WIRE_END || !firestore_key_is_name(element_r->type))
        return wrong_key;
    if (element_r->has_id == (element_r->name.size > 0) ||
        (!element_r->has_id && !firestore_key_is_name(element_r->name)))
        return wrong_key;
    return NULL;
}

/* A number stands as Firestore shows it: __id7__. */
static void add_id(struct builder *text, const struct firestore_element *element)
{
    if (element->has_id)
        builder_printf(text, "__id%" PRId64 "__", element->id);
    else
        builder_add_bytes(text, element->name);
}

/* --- keys of entities --- */

static const char *read_path(struct bytes path, struct builder *collection, struct builder *id,
                             size_t *levels_r)
{
    static const struct numbers numbers = {2, 3, 4};
    struct firestore_field field;
    enum firestore_wire_event event;
    *levels_r = 0;
    while ((event = firestore_wire_next(&path, &field)) == FIRESTORE_WIRE_FIELD) {
        struct firestore_element element;
        if (!firestore_wire_is(&field, 1, FIRESTORE_GROUP) || ++*levels_r > LEVELS_MOST)
            return wrong_key;
        const char *problem = firestore_key_read_element(field.text, &numbers, &element);
        if (problem)
            return problem;
        if (*levels_r > 1) {
            builder_add_text(collection, "/");
            builder_add_text(id, "/");
        }
        builder_add_bytes(collection, element.type);
        add_id(id, &element);
    }
    return event == FIRESTORE_WIRE_END && *levels_r ? NULL : wrong_key;
}

static struct bytes firestore_key_keep(struct arena *arena, const struct builder *text)
{
    struct bytes bytes = builder_bytes(text);
    return (struct bytes){arena_copy(arena, bytes.data, bytes.size), bytes.size};
}

const char *firestore_key_read(struct arena *arena, struct bytes reference, struct firestore_key *key_r)
{
    struct builder collection = {0}, id = {0};
    struct bytes path = NO_BYTES;
    struct firestore_field field;
    enum firestore_wire_event event;
    size_t levels = 0;
    const char *problem = NULL;
    while ((event = firestore_wire_next(&reference, &field)) == FIRESTORE_WIRE_FIELD)
        if (firestore_wire_is(&field, PATH, FIRESTORE_BYTES))
            path = field.text;
        else if (field.number == NAMESPACE && field.text.size)
            problem = "a document in a namespace of Datastore";
    if (!problem)
        problem =
            event == FIRESTORE_WIRE_END && path.data ? read_path(path, &collection, &id, &levels) : wrong_key;
    if (!problem)
        *key_r = (struct firestore_key){firestore_key_keep(arena, &collection),
                                        firestore_key_keep(arena, &id), levels > 1};
    builder_free(&collection);
    builder_free(&id);
    return problem;
}

/* --- values --- */

const char *firestore_key_add_reference(struct bytes group, struct builder *path)
{
    static const struct numbers numbers = {15, 16, 17};
    struct firestore_field field;
    enum firestore_wire_event event;
    size_t levels = 0;
    while ((event = firestore_wire_next(&group, &field)) == FIRESTORE_WIRE_FIELD) {
        struct firestore_element element;
        if (field.number == NAMESPACE && field.text.size)
            return "a reference to a namespace of Datastore";
        if (!firestore_wire_is(&field, PATH, FIRESTORE_GROUP))
            continue;
        if (++levels > LEVELS_MOST || firestore_key_read_element(field.text, &numbers, &element))
            return "expected a reference with the path of a document";
        if (levels > 1)
            builder_add_text(path, "/");
        builder_add_bytes(path, element.type);
        builder_add_text(path, "/");
        add_id(path, &element);
    }
    return event == FIRESTORE_WIRE_END && levels ? NULL : "expected a reference with the path of a document";
}
