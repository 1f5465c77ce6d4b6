/* homes: nginx's list of the workers that keep the database sessions of each namespace, and of the origins
 * whose pages may read what nginx refuses. */
#include "control/nginx/homes.h"

#include <stdio.h>
#include <string.h>

enum {
    BUSY = 2,  /* requests in progress at a worker of a home before others get them */
    SPARE = 1, /* session of a worker for namespace z, which every worker reads configurations from */
};

const char *homes_escape(const char *code)
{
    bool is_word = strcmp(code, "default") == 0 || strcmp(code, "hostnames") == 0 ||
                   strcmp(code, "include") == 0 || strcmp(code, "volatile") == 0;
    return is_word ? "\\" : "";
}

int64_t homes_width(const struct settings *settings, size_t count)
{
    int64_t sessions = settings->connections - SPARE, width = settings->workers;
    if (sessions < 1)
        sessions = 1;
    if ((int64_t)count > sessions)
        width = sessions * settings->workers / (int64_t)count;
    if (width < 1)
        width = 1;
    return width < settings->workers ? width : settings->workers;
}

int64_t homes_large(int64_t workers)
{
    return workers - (workers > 1 ? workers / 2 : 1);
}

static void add_server(struct builder *builder, const struct settings *settings, int64_t position,
                       const char *words)
{
    builder_printf(builder, "    server unix:%s/worker-%lld.sock max_fails=0%s;\n", settings->run_directory,
                   (long long)(position % settings->workers), words);
}

static void begin_upstream(struct builder *builder, const char *name, int64_t home)
{
    builder_printf(builder, "upstream %s_%lld {\n    zone %s_%lld 128k;\n    least_conn;\n", name,
                   (long long)home, name, (long long)home);
}

/* nginx keeps the connections as for all workers together: see the upstream `stampd` of nginx.conf.in. */
static void end_upstream(struct builder *builder)
{
    builder_add_text(builder,
                     "    keepalive 256;\n    keepalive_requests 10000;\n    keepalive_timeout 10s;\n"
                     "    keepalive_time 30s;\n}\n");
}

/* A home whose workers are preferred, one with those workers only, and one with those for large bodies. */
static void add_upstreams(struct builder *builder, const struct settings *settings, int64_t home,
                          int64_t width)
{
    char busy[32];
    snprintf(busy, sizeof busy, " max_conns=%d", BUSY);
    begin_upstream(builder, "stampd_home", home);
    for (int64_t i = 0; i < settings->workers; i++)
        add_server(builder, settings, home + i, i < width ? busy : " backup");
    end_upstream(builder);
    begin_upstream(builder, "stampd_only", home);
    for (int64_t i = 0; i < width; i++)
        add_server(builder, settings, home + i, "");
    end_upstream(builder);
    begin_upstream(builder, "stampd_large", home);
    for (int64_t i = homes_large(width); i < width; i++)
        add_server(builder, settings, home + i, "");
    end_upstream(builder);
}

static void add_homes(struct builder *builder, const char *before, const char *name, int64_t homes,
                      int64_t width)
{
    for (int64_t home = 0; home < homes; home++)
        builder_printf(builder, "    %s%lld/%lld %s_%lld;\n", before, (long long)home, (long long)width, name,
                       (long long)home);
}

/* $stampd_body is `large` or empty.  Without homes no request is asked for its own. */
static void add_maps(struct builder *builder, int64_t homes, int64_t width)
{
    if (homes)
        builder_add_text(builder, "fastcgi_param STAMPD_HOME $stampd_home if_not_empty;\n");
    builder_printf(builder, "map $stampd_body%s $stampd_workers {\n", homes ? "$stampd_home" : "");
    add_homes(builder, "", "stampd_home", homes, width);
    add_homes(builder, "large", "stampd_large", homes, width);
    builder_add_text(builder, "    large stampd_large;\n    default stampd;\n}\n"
                              "map $stampd_home $stampd_workers_only {\n");
    add_homes(builder, "", "stampd_only", homes, width);
    builder_add_text(builder, "    default stampd;\n}\n");
}

/* --- origins: for what nginx refuses by itself --- */

/* A value for each origin that the namespace lists, the text of the list: exact ones precede expressions, as
 * in cors.c.  A map does not distinguish cases; browsers send small letters. */
static void add_origins_of(struct builder *builder, const char *code, const struct ns_conf *conf,
                           bool with_cookies)
{
    for (const struct json *one = conf->origins ? conf->origins->first : NULL; one; one = one->next) {
        const struct bytes origin = one->value;
        bool is_any = bytes_equal(origin, BYTES("*"));
        if (with_cookies && !is_any && conf->accounts.is_on)
            builder_printf(builder, "    \"%s %.*s\" true;\n", code, (int)origin.size, origin.data);
        else if (!with_cookies && is_any)
            builder_printf(builder, "    \"~^%s .\" *;\n", code);
        else if (!with_cookies)
            builder_printf(builder, "    \"%s %.*s\" %.*s;\n", code, (int)origin.size, origin.data,
                           (int)origin.size, origin.data);
    }
}

enum { ORIGINS_ALLOWED, ORIGINS_WITH_COOKIES, ORIGINS_VARY, ORIGINS_MAPS };

/* Maps that only a refusal asks: most requests cost nothing. */
static void add_origins(struct builder *builder, struct arena *arena, const struct namespace_conf *confs,
                        size_t count, const char *but)
{
    static const char *const begins[ORIGINS_MAPS] = {
        [ORIGINS_ALLOWED] = "map \"$stampd_ns $http_origin\" $stampd_origin {\n",
        [ORIGINS_WITH_COOKIES] = "map \"$stampd_ns $http_origin\" $stampd_origin_cookies {\n",
        [ORIGINS_VARY] = "map $stampd_ns $stampd_origin_vary {\n"};
    for (int map = 0; map < ORIGINS_MAPS; map++) {
        builder_add_bytes(builder, bytes_of(begins[map]));
        for (size_t i = 0; i < count; i++) {
            const struct ns_conf conf = namespace_read(arena, confs[i].text);
            if (!*confs[i].database || !conf.origins || (but && strcmp(confs[i].code, but) == 0))
                continue;
            if (map == ORIGINS_VARY)
                builder_printf(builder, "    %s%s Origin;\n", homes_escape(confs[i].code), confs[i].code);
            else
                add_origins_of(builder, confs[i].code, &conf, map == ORIGINS_WITH_COOKIES);
        }
        builder_add_text(builder, "    default \"\";\n}\n");
    }
}

struct bytes homes_compose(struct arena *arena, const struct settings *settings,
                           const struct namespace_conf *confs, size_t count, const char *but)
{
    struct builder builder = {0};
    size_t kept = but && ns_registry_find(confs, count, but) ? count - 1 : count;
    int64_t width = homes_width(settings, kept), workers = settings->workers;
    int64_t homes = width == workers ? 0 : (int64_t)kept < workers ? (int64_t)kept : workers, next = 0;
    builder_add_text(&builder, "# The workers that each namespace prefers, and its origins; written by "
                               "stampctl, overwritten by it.\n"
                               "map $stampd_ns $stampd_home {\n");
    for (size_t i = 0; homes && i < count; i++) {
        if (!*confs[i].database || (but && strcmp(confs[i].code, but) == 0))
            continue;
        builder_printf(&builder, "    %s%s %lld/%lld;\n", homes_escape(confs[i].code), confs[i].code,
                       (long long)(next++ % homes), (long long)width);
    }
    builder_add_text(&builder, "    default \"\";\n}\n");
    add_maps(&builder, homes, width);
    for (int64_t home = 0; home < homes; home++)
        add_upstreams(&builder, settings, home, width);
    add_origins(&builder, arena, confs, count, but);
    return builder_take(&builder, arena);
}

const char *homes_path(struct arena *arena, const char *map)
{
    return arena_printf(arena, "%s.homes", map);
}
