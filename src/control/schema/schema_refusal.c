/* schema_refusal: one transaction writes the schema without the property; a trigger does the rest. */
#include "control/schema/schema_refusal.h"

#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "control/schema/schema_wait.h"
#include "edge/json/json.h"

#define TEXT(text) (int)(text).size, (text).data

bool schema_refusal_read(struct arena *arena, const char *detail, struct schema_refusal *refusal_r)
{
    static const struct json_limits limits = {.depth = 2, .tree_depth = 2};
    struct json *list;
    struct json_problem problem;
    *refusal_r = (struct schema_refusal){0};
    struct bytes *const parts[] = {&refusal_r->property, &refusal_r->class, &refusal_r->id, &refusal_r->value,
                                   &refusal_r->other};
    if (json_read(arena, bytes_of(arena_copy(arena, detail, strlen(detail))), &limits, &list, &problem) ||
        list->kind != JSON_ARRAY || list->count != COUNT_OF(parts))
        return false;
    size_t part = 0;
    for (const struct json *one = list->first; one; one = one->next)
        *parts[part++] = one->value;
    return true;
}

static const struct schema_unique *find_unique(const struct schema *schema,
                                               const struct schema_refusal *refusal)
{
    const struct schema_class *class = schema_find_class(schema, refusal->class);
    for (size_t i = 0; class && i < class->unique_count; i++)
        if (bytes_equal(class->uniques[i].name, refusal->property))
            return &class->uniques[i];
    return NULL;
}

/* The schema without the property. */
static const struct schema *leave_out(struct arena *arena, const struct schema *schema,
                                      const struct schema_refusal *refusal)
{
    struct schema *made = ARENA_NEW(arena, struct schema);
    struct schema_class *classes = ARENA_ARRAY(arena, struct schema_class, schema->class_count);
    *made = *schema;
    made->classes = classes;
    for (size_t c = 0; c < schema->class_count; c++) {
        classes[c] = schema->classes[c];
        if (!bytes_equal(classes[c].name, refusal->class))
            continue;
        struct schema_unique *uniques = ARENA_ARRAY(arena, struct schema_unique, classes[c].unique_count);
        classes[c].uniques = uniques;
        classes[c].unique_count = 0;
        for (size_t i = 0; i < schema->classes[c].unique_count; i++)
            if (!bytes_equal(schema->classes[c].uniques[i].name, refusal->property))
                uniques[classes[c].unique_count++] = schema->classes[c].uniques[i];
    }
    return made;
}

static bool write_schema(struct control *control, struct pg *pg, const struct schema *schema)
{
    struct builder text = {0};
    struct pg_params params;
    struct pg_result *row;
    schema_write(schema, &text);
    pg_params_start(&params, control->arena);
    pg_params_add_text(&params, builder_bytes(&text));
    bool is_done = control_query(
        control, pg, "taking the property back",
        "update stampd.schema set number = number + 1, content = $1::text where one returning number",
        &params, &row);
    builder_free(&text);
    return is_done;
}

static bool purge_values(struct control *control, struct pg *pg)
{
    struct pg_result *row;
    do
        if (!control_query(control, pg, "forgetting its values", "select stampd.purge_values(10000)", NULL,
                           &row))
            return false;
    while (pg_get_i64(row, 0, 0) > 0);
    return true;
}

/* Both documents, by the ids that clients have. */
static bool report_documents(struct control *control, struct pg *pg, const struct schema_refusal *refusal)
{
    struct data_keys *keys;
    struct bytes id = refusal->id, other = refusal->other;
    if (!ns_keys_read(control, pg, &keys))
        return false;
    if (!data_keys_open_id(keys, control->arena, refusal->class, &id) ||
        !data_keys_open_id(keys, control->arena, refusal->class, &other))
        id = other = BYTES("(altered)");
    message_print("%.*s: the unique property %.*s cannot be applied: the documents %.*s and %.*s both have "
                  "the value %.*s",
                  TEXT(refusal->class), TEXT(refusal->property), TEXT(id), TEXT(other), TEXT(refusal->value));
    return true;
}

bool schema_refusal_take_back(struct control *control, struct pg *pg, const struct schema *applied,
                              const struct schema_refusal *refusal)
{
    struct schema_plan present;
    if (refusal->other.data && !report_documents(control, pg, refusal))
        return false;
    if (!refusal->other.data)
        message_print(
            "%.*s: the unique property %.*s cannot be applied: a document of another namespace has %.*s",
            TEXT(refusal->class), TEXT(refusal->property), TEXT(refusal->value));
    if (!schema_plan_read_applied(control, pg, &present))
        return false;
    const struct schema_unique *unique = find_unique(present.applied, refusal);
    const struct schema_unique *before = find_unique(applied, refusal);
    if (!unique || (unique->is_global && before && before->is_global))
        return false;
    if (!write_schema(control, pg, leave_out(control->arena, present.applied, refusal)) ||
        !schema_wait_for_older(control, pg) || !purge_values(control, pg))
        return false;
    message_print(
        "%.*s: %.*s is not applied, everything else is; give one of the documents another value and run "
        "apply again",
        TEXT(refusal->class), TEXT(refusal->property));
    return true;
}
