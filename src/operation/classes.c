/* classes: a list of the declared classes; there are tens, not thousands. */
#include "operation/classes.h"

#include <stdlib.h>

#include "base/memory.h"
#include "store/documents/store_schema.h"

struct document_class {
    struct bytes name;
    const struct item_class *items;
    size_t count;
    const char *schema;
};

static struct document_class *classes;
static size_t class_count;

static const struct document_class *classes_find_class(struct bytes name)
{
    for (size_t i = 0; i < class_count; i++)
        if (bytes_equal(classes[i].name, name))
            return &classes[i];
    return NULL;
}

bool classes_add(struct bytes document_class, const struct item_class *items, size_t count,
                 const char *schema)
{
    if (classes_find_class(document_class))
        return false;
    struct document_class *more = memory_grown(classes, class_count + 1, sizeof *classes, "adding a class");
    classes = more;
    classes[class_count++] =
        (struct document_class){.name = document_class, .items = items, .count = count, .schema = schema};
    return true;
}

bool classes_get(size_t place, struct bytes *document_class_r, const char **schema_r)
{
    if (place >= class_count)
        return false;
    *document_class_r = classes[place].name;
    *schema_r = classes[place].schema;
    return true;
}

bool classes_is_declared(struct bytes document_class)
{
    return classes_find_class(document_class) != NULL;
}

const char *classes_refuse_copy(struct bytes document_class, const struct item_class *item)
{
    const struct document_class *declared = classes_find_class(document_class);
    if (!declared)
        return "The class is not declared.";
    for (size_t i = 0; i < declared->count; i++) {
        const struct item_class *own = &declared->items[i];
        const struct schema_item target = {
            .is_singleton = own->is_singleton, .is_raw = own->is_raw, .copies = own->copies};
        if (bytes_equal(own->name, item->name))
            return schema_refuse_copy(&target, false, item->is_raw);
    }
    return schema_refuse_copy(NULL, false, item->is_raw);
}

const char *classes_refusal(struct bytes document_class, struct bytes item_class, bool is_singleton,
                            bool is_raw)
{
    const struct document_class *declared = classes_find_class(document_class);
    if (!declared)
        return NULL;
    for (size_t i = 0; i < declared->count; i++) {
        const struct item_class *item = &declared->items[i];
        if (!bytes_equal(item->name, item_class))
            continue;
        if (item->is_singleton != is_singleton)
            return item->is_singleton ? "Items of this class have no key."
                                      : "Items of this class have a key.";
        if (item->is_raw != is_raw)
            return item->is_raw ? "Items of this class are raw text." : "Items of this class are JSON.";
        return NULL;
    }
    return "The application declares no such class of items here.";
}

enum fault classes_schema(struct attempt *attempt, const struct schema **schema_r)
{
    enum fault fault = attempt->schema ? FAULT_NONE
                                       : store_schema(documents_store(attempt->worker_context->documents),
                                                      attempt->ns, attempt->call->arena, &attempt->schema);
    *schema_r = attempt->schema;
    return fault;
}

enum fault classes_confirm(struct attempt *attempt, enum fault refusal)
{
    return FAULT_FIRST(attempt->schema
                           ? store_schema_confirm(documents_store(attempt->worker_context->documents),
                                                  attempt->ns, attempt->call->arena, attempt->schema)
                           : FAULT_NONE,
                       refusal);
}

enum fault classes_judge(struct attempt *attempt, struct bytes document_class, struct bytes item_class,
                         bool is_singleton, bool is_raw, const char **refusal_r)
{
    const struct schema *schema;
    *refusal_r = classes_refusal(document_class, item_class, is_singleton, is_raw);
    if (classes_is_declared(document_class))
        return FAULT_NONE;
    enum fault fault = classes_schema(attempt, &schema);
    if (!fault)
        *refusal_r = schema_refusal(schema, document_class, item_class, is_singleton, is_raw);
    return *refusal_r && !fault ? classes_confirm(attempt, FAULT_NONE) : fault;
}
