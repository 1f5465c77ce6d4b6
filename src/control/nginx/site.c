/* site: pieces of nginx's configuration. */
#include "control/nginx/site.h"

#include <string.h>
#include <unistd.h>

#include "base/builder.h"

static const char *site_finish(struct arena *arena, struct builder *builder)
{
    const char *text = builder->size ? arena_copy(arena, builder->data, builder->size) : "";
    builder_free(builder);
    return text;
}

static bool is_port(const char *word)
{
    return *word && strspn(word, "0123456789") == strlen(word);
}

/* nginx does not start on a kernel without IPv6. */
static bool has_six(void)
{
    return access("/proc/net/if_inet6", F_OK) == 0;
}

static void add_listen(struct builder *builder, const char *word, const char *more)
{
    builder_printf(builder, "\n        listen %s%s;", word, more);
    if (is_port(word) && has_six())
        builder_printf(builder, "\n        listen [::]:%s%s;", word, more);
}

const char *site_listen(struct arena *arena, const struct option_words *addresses, const char *more)
{
    struct builder builder = {0};
    for (int i = 0; i < addresses->count; i++)
        add_listen(&builder, addresses->words[i], more);
    return site_finish(arena, &builder);
}

const char *site_local(struct arena *arena, const struct site *site)
{
    return site->local_port ? arena_printf(arena, "\n        listen 127.0.0.1:%lld backlog=1024;",
                                           (long long)site->local_port)
                            : "";
}

const char *site_names(struct arena *arena, const struct site *site)
{
    struct builder builder = {0};
    for (int i = 0; i < site->names.count; i++)
        builder_printf(&builder, "%s%s", i ? " " : "", site->names.words[i]);
    return site_finish(arena, &builder);
}

const char *site_hsts(struct arena *arena, const struct site *site, const char *indent)
{
    return site->hsts_s
               ? arena_printf(arena, "%sadd_header Strict-Transport-Security \"max-age=%lld\" always;\n",
                              indent, (long long)site->hsts_s)
               : "";
}

const char *site_port(struct arena *arena, const struct site *site)
{
    const char *word = site->listen.words[0], *colon = strrchr(word, ':');
    const char *port = is_port(word) ? word : colon && is_port(colon + 1) ? colon + 1 : "443";
    return strcmp(port, "443") == 0 ? "" : arena_printf(arena, ":%s", port);
}
