/* schema_join: joins the declarations of a namespace with those of the server's applications, which take
 * precedence. */
#include "control/schema/schema_plan.h"

#include <stdlib.h>
#include <string.h>

#include "control/message.h"
#include "operation/classes.h"
#include "operation/module/module.h"

static bool load_modules(struct control *control)
{
    static bool is_loaded;
    char problem[1024];
    if (!is_loaded && !module_load_all(&control->settings, problem, sizeof problem))
        return message_refuse("%s", problem);
    is_loaded = true;
    return true;
}

/* A class that an application declares without a schema may get additions only. */
static bool agrees(const struct schema_class *class)
{
    for (size_t i = 0; i < class->item_count; i++) {
        const struct schema_item *item = &class->items[i];
        const char *refusal = classes_refusal(class->name, item->name, item->is_singleton, item->is_raw);
        if (!refusal)
            continue;
        return message_refuse("classes.%.*s.items.%.*s: an application declares the class otherwise: %s",
                              (int)class->name.size, class->name.data, (int)item->name.size, item->name.data,
                              refusal);
    }
    return true;
}

static int compare_classes(const void *a, const void *b)
{
    const struct schema_class *one = a, *other = b;
    return bytes_compare(one->name, other->name);
}

static bool add_of_module(struct control *control, struct schema *joined, struct schema_class *classes,
                          struct bytes name, const char *text)
{
    struct schema *schema;
    struct schema_problem problem;
    text = arena_printf(control->arena, "{\"classes\":{\"%.*s\":%s}}", (int)name.size, name.data, text);
    if (schema_read(control->arena, bytes_of(text), &schema, &problem))
        return message_refuse("%s: %s", problem.path, problem.expected);
    classes[joined->class_count++] = schema->classes[0];
    return true;
}

bool schema_plan_join_modules(struct control *control, const char *code, const struct schema *declared,
                              const struct schema **joined_r)
{
    struct bytes name;
    const char *text;
    size_t count = 0;
    *joined_r = declared;
    if (strcmp(code, "z") == 0) /* no application runs there */
        return true;
    if (!load_modules(control))
        return false;
    while (classes_get(count, &name, &text))
        count++;
    struct schema *joined = ARENA_NEW(control->arena, struct schema);
    struct schema_class *classes =
        ARENA_ARRAY(control->arena, struct schema_class, declared->class_count + count);
    for (size_t i = 0; i < declared->class_count; i++) {
        classes[i] = declared->classes[i];
        if (classes_is_declared(classes[i].name) && !agrees(&classes[i]))
            return false;
    }
    *joined = *declared;
    joined->classes = classes;
    for (size_t i = 0; i < count; i++) {
        classes_get(i, &name, &text);
        if (text && schema_find_class(declared, name))
            return message_refuse(
                "classes.%.*s: an application of the server declares this class, with a schema of its own",
                (int)name.size, name.data);
        if (text && !add_of_module(control, joined, classes, name, text))
            return false;
    }
    qsort(classes, joined->class_count, sizeof *classes, compare_classes);
    *joined_r = joined;
    return true;
}
