/* pg_conninfo: reads and writes connection strings with the parser of libpq. */
#include "edge/pg/pg_conninfo.h"

#include <string.h>

#include "base/bytes.h"
#include "edge/pg/pg_private.h"

const char *pg_conninfo_value(struct arena *arena, const char *conninfo, const char *keyword)
{
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    const char *value = NULL;
    for (PQconninfoOption *option = options; option && option->keyword; option++)
        if (option->val && strcmp(option->keyword, keyword) == 0)
            value = arena_copy(arena, option->val, strlen(option->val));
    PQconninfoFree(options);
    return value;
}

static bool pg_conninfo_is_among(const char *word, const char *const *words)
{
    while (*words && strcmp(word, *words) != 0)
        words++;
    return *words != NULL;
}

const char *pg_conninfo_without(struct arena *arena, const char *conninfo, const char *const *keywords)
{
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    struct builder builder = {0};
    if (!options)
        return NULL;
    for (PQconninfoOption *option = options; option->keyword; option++) {
        if (!option->val || pg_conninfo_is_among(option->keyword, keywords))
            continue;
        builder_printf(&builder, "%s='", option->keyword);
        for (const char *p = option->val; *p; p++) {
            if (*p == '\'' || *p == '\\')
                builder_add_text(&builder, "\\");
            builder_add(&builder, p, 1);
        }
        builder_add_text(&builder, "' ");
    }
    const char *result = arena_copy(arena, builder_bytes(&builder).data, builder.size);
    builder_free(&builder);
    PQconninfoFree(options);
    return result;
}
