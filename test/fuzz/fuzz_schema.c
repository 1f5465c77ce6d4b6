/* fuzz_schema: schema_read on any text.  What was read, written, is read as the same and written alike; a
 * refusal names a path and what is expected. */
#include "fuzz.h"

#include "model/schema/schema.h"

const char fuzz_target[] = "schema";

static void check_names(const struct schema *schema)
{
    for (size_t i = 0; i < schema->class_count; i++) {
        const struct schema_class *class = &schema->classes[i];
        assert(schema_find_class(schema, class->name) == class);
        assert(class->release >= 1 && class->release <= SCHEMA_RELEASE_MOST && class->zombie_days >= 0);
        for (size_t k = 0; k < class->item_count; k++) {
            const struct schema_item *item = &class->items[k];
            assert(schema_find_item(class, item->name) == item);
            for (size_t f = 0; f < item->field_count; f++)
                assert(schema_find_field(item, item->fields[f].name) == &item->fields[f]);
        }
    }
}

static void check_written(struct arena *arena, const struct schema *schema)
{
    struct builder text = {0}, again = {0};
    struct schema *copy;
    struct schema_problem problem;
    schema_write(schema, &text);
    enum fault fault = schema_read(arena, builder_bytes(&text), &copy, &problem);
    assert(fault == FAULT_NONE && copy->class_count == schema->class_count);
    schema_write(copy, &again);
    assert(bytes_equal(builder_bytes(&text), builder_bytes(&again)));
    builder_free(&text);
    builder_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create("fuzz");
    struct schema *schema;
    struct schema_problem problem = {0};
    enum fault fault = schema_read(arena, (struct bytes){(const char *)data, size}, &schema, &problem);
    if (fault == FAULT_NONE) {
        check_names(schema);
        check_written(arena, schema);
    } else {
        assert(fault == FAULT_AARG && problem.path && problem.expected && *problem.expected);
    }
    arena_destroy(arena);
    return 0;
}
