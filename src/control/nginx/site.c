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

const char *site_listen(struct arena *arena, const struct site *site)
{
    struct builder builder = {0};
    const char *more =
        site->is_proxied ? " ssl http2 backlog=1024 proxy_protocol" : " ssl http2 backlog=1024";
    for (int i = 0; i < site->listen.count; i++)
        add_listen(&builder, site->listen.words[i], more);
    return site_finish(arena, &builder);
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

const char *site_stray(const struct site *site)
{
    return site->root ? "rewrite ^(.*)$ /@files$1 last;" : "return 404;";
}

/* The page has no scripts, styles or requests but those of its own origin, and no page contains it. */
static void add_console(struct arena *arena, const struct site *site, struct builder *builder)
{
    builder_printf(builder,
                   "\n        # The administrator's page.\n"
                   "        location = /console {\n"
                   "            return 308 /console/;\n"
                   "        }\n"
                   "        location ^~ /console/ {\n"
                   "%s"
                   "            add_header X-Request-Id $stampd_request_id always;\n"
                   "            add_header Content-Security-Policy \"default-src 'none'; script-src 'self'; "
                   "style-src 'self'; "
                   "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors "
                   "'none'\" always;\n"
                   "            add_header Cross-Origin-Opener-Policy same-origin always;\n"
                   "            add_header Referrer-Policy no-referrer always;\n"
                   "            add_header X-Content-Type-Options nosniff always;\n"
                   "            add_header Cache-Control no-cache;\n"
                   "            log_not_found off;\n"
                   "            alias %s/;\n"
                   "            index index.html;\n"
                   "            gzip_types text/css text/javascript;\n"
                   "            types {\n"
                   "                text/html html;\n"
                   "                text/css css;\n"
                   "                text/javascript js;\n"
                   "            }\n"
                   "        }",
                   site_hsts(arena, site, "            "), site->console);
}

const char *site_locations(struct arena *arena, const struct site *site)
{
    struct builder builder = {0};
    if (site->console)
        add_console(arena, site, &builder);
    if (site->root)
        builder_printf(&builder,
                       "\n        # Files of the application, for every address that is no namespace's.  "
                       "Other sites put them into no frame; what else\n"
                       "        # a page forbids is in the page.\n"
                       "        location ^~ /@files/ {\n"
                       "            internal;\n"
                       "%s"
                       "            add_header X-Request-Id $stampd_request_id always;\n"
                       "            add_header Content-Security-Policy \"frame-ancestors 'self'\" always;\n"
                       "            add_header X-Content-Type-Options nosniff always;\n"
                       "            log_not_found off;\n"
                       "            alias %s/;\n"
                       "            index index.html;\n"
                       "            types {\n"
                       "                text/html html htm;\n"
                       "                text/css css;\n"
                       "                text/javascript js mjs;\n"
                       "                text/plain txt;\n"
                       "                text/xml xml;\n"
                       "                application/json json map;\n"
                       "                application/manifest+json webmanifest;\n"
                       "                application/pdf pdf;\n"
                       "                application/wasm wasm;\n"
                       "                font/woff2 woff2;\n"
                       "                image/svg+xml svg;\n"
                       "                image/png png;\n"
                       "                image/jpeg jpg jpeg;\n"
                       "                image/gif gif;\n"
                       "                image/webp webp;\n"
                       "                image/x-icon ico;\n"
                       "            }\n"
                       "        }",
                       site_hsts(arena, site, "            "), site->root);
    if (site->include)
        builder_printf(&builder, "\n        include %s;", site->include);
    return site_finish(arena, &builder);
}

/* ":8443" of an address whose port is not the default of HTTPS. */
static const char *port_of(const struct site *site)
{
    const char *word = site->listen.words[0], *colon = strrchr(word, ':');
    const char *port = is_port(word) ? word : colon && is_port(colon + 1) ? colon + 1 : "443";
    return strcmp(port, "443") == 0 ? "" : port;
}

const char *site_http(struct arena *arena, const struct site *site)
{
    struct builder builder = {0};
    const char *port = port_of(site);
    if (!site->http.count)
        return "";
    builder_add_text(&builder, "\n    # --- plain HTTP: all go to HTTPS, but those who look for a proof of "
                               "the name (ACME)\n    server {");
    for (int i = 0; i < site->http.count; i++)
        add_listen(&builder, site->http.words[i], "");
    builder_printf(&builder, "\n        server_name %s;", site_names(arena, site));
    if (site->acme)
        builder_printf(&builder,
                       "\n        location ^~ /.well-known/acme-challenge/ {\n"
                       "            root %s;\n"
                       "            default_type text/plain;\n"
                       "        }",
                       site->acme);
    builder_printf(&builder,
                   "\n        location / {\n"
                   "            return 301 https://$host%s%s$request_uri;\n"
                   "        }\n"
                   "    }\n",
                   *port ? ":" : "", port);
    return site_finish(arena, &builder);
}
