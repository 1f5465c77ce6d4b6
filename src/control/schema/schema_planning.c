/* schema_planning: texts, steps and names. */
#include "control/schema/schema_planning.h"

#include <string.h>

struct builder *schema_planning_text(struct planning *planning)
{
    struct builder *text = ARENA_NEW(planning->arena, struct builder);
    arena_defer(planning->arena, (void (*)(void *))builder_free, text);
    return text;
}

void schema_planning_add(struct planning *planning, enum step_kind kind, const char *what,
                         struct builder *sql)
{
    struct schema_plan *plan = planning->plan;
    ARENA_GROW(planning->arena, plan->steps, plan->count, planning->capacity);
    if (sql)
        builder_add(sql, "", 1);
    plan->steps[plan->count++] = (struct step){.kind = kind, .what = what, .sql = sql ? sql->data : NULL};
}

struct bytes schema_planning_table(struct arena *arena, const char *prefix, struct side_name name,
                                   struct bytes field)
{
    return bytes_of(arena_printf(arena, "%s_%.*s_%.*s%s%.*s", prefix, (int)name.class.size, name.class.data,
                                 (int)name.item.size, name.item.data, field.size ? "_" : "", (int)field.size,
                                 field.size ? field.data : ""));
}

bool schema_planning_has_word(struct arena *arena, struct bytes words, struct side_name name,
                              struct bytes field)
{
    const char *one = arena_printf(arena, " %.*s.%.*s.%.*s ", (int)name.class.size, name.class.data,
                                   (int)name.item.size, name.item.data, (int)field.size, field.data);
    const char *all = arena_printf(arena, " %.*s ", (int)words.size, words.size ? words.data : "");
    return strstr(all, one) != NULL;
}
