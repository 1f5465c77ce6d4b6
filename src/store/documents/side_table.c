/* side_table: calls two functions for each table, which the schema has created with it. */
#include "store/documents/side_table.h"

#include <string.h>

#include "base/log.h"

static struct side_table side_of(struct arena *arena, unsigned long long number,
                                 const struct schema_class *class, const struct schema_item *item)
{
    int class_size = (int)class->name.size, item_size = (int)item->name.size;
    const char *class_name = class->name.data, *item_name = item->name.data;
    return (struct side_table){
        .class = class,
        .item = item,
        .write = {arena_printf(arena, "write_%llu_%.*s_%.*s", number, class_size, class_name, item_size,
                               item_name),
                  arena_printf(arena, "select stampd.\"x_%.*s_%.*s_write\"($1::text[], $2::text[])",
                               class_size, class_name, item_size, item_name),
                  2},
        .wipe = {arena_printf(arena, "wipe_%llu_%.*s_%.*s", number, class_size, class_name, item_size,
                              item_name),
                 arena_printf(arena, "select stampd.\"x_%.*s_%.*s_wipe\"($1::text[])", class_size, class_name,
                              item_size, item_name),
                 1},
    };
}

struct side_table *side_table_list(struct arena *arena, const struct schema *schema, uint64_t turn,
                                   size_t *count_r)
{
    size_t count = 0, most = 0;
    for (size_t c = 0; c < schema->class_count; c++)
        most += schema->classes[c].item_count;
    struct side_table *sides = ARENA_ARRAY(arena, struct side_table, most);
    for (size_t c = 0; c < schema->class_count; c++) {
        const struct schema_class *class = &schema->classes[c];
        for (size_t i = 0; i < class->item_count; i++)
            if (class->items[i].field_count)
                sides[count++] = side_of(arena, turn, class, &class->items[i]);
    }
    *count_r = count;
    return sides;
}

void side_table_leave(struct side_table *sides, size_t count, struct builder *left)
{
    for (struct side_table *side = sides; side < sides + count; side++) {
        if (side->is_prepared)
            builder_printf(left, "%s %s ", side->write.name, side->wipe.name);
        side->is_prepared = false;
    }
}

/* One by one: if the first of the two of a side was refused, the second may not have been prepared. */
static void deallocate_left(struct pg *pg, struct arena *arena, struct builder *left)
{
    const char *name = left->data;
    while (name && name < left->data + left->size) {
        size_t size = strcspn(name, " ");
        const char *sql = arena_printf(
            arena,
            "do $$ begin deallocate \"%.*s\"; exception when invalid_sql_statement_name then null; end $$",
            (int)size, name);
        if (pg_execute(pg, sql))
            log_warning("a statement of a former schema is still prepared");
        name += size + 1;
    }
    builder_free(left);
    *left = (struct builder){0};
}

enum fault side_table_prepare(struct side_table *side, struct pg *pg, struct arena *arena,
                              struct builder *left)
{
    const struct pg_statement both[] = {side->write, side->wipe};
    if (side->is_prepared)
        return FAULT_NONE;
    if (left->size)
        deallocate_left(pg, arena, left);
    side->is_prepared = true; /* the first of them, even if the second is refused */
    return pg_prepare(pg, both, COUNT_OF(both));
}
