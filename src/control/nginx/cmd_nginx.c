/* cmd_nginx: `stampctl nginx` writes nginx's configuration from the template and stampd's settings. */
#include "control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/nginx/homes.h"
#include "control/nginx/nginx_refusals.h"
#include "control/nginx/map.h"
#include "control/message.h"
#include "control/ns/ns_registry.h"
#include "control/nginx/site.h"
#include "control/nginx/template.h"
#include "base/log.h"
#include "blob/object_stores.h"
#include "edge/crypto/crypto.h"
#include "edge/json/json.h"

enum {
    READ_TIMEOUT_ABOVE_S = 20, /* first an operation's own limit, then time to answer */
    CONNECTIONS = 4096,        /* of a process of nginx, besides those of live events, which take two each */
    DESCRIPTORS = 12288,       /* beyond one for each connection: listening sockets, files */
    VALUES_MOST = 80,
    TASK_REQUESTS = 10, /* queue managers may send this many times as many requests as clients */
    RANKED = 6,         /* workers before each other; those behind take turns */
    RANK_BITS = 4,      /* of 17 requests that find two of them idle, 16 go to the first */
};

struct nginx_options {
    struct site site;
    const char *probe_listen, *certificate, *key, *user;
    const char *pid, *folder, *access_log, *error_log, *template_path, *output;
    struct map_options map;
    int64_t workers;
    bool in_turn;
};

static void add_servers(struct builder *builder, const struct settings *settings, int64_t first, int64_t end,
                        const char *words)
{
    for (int64_t i = first; i < end; i++)
        builder_printf(builder, "%s        server unix:%s/worker-%lld.sock max_fails=0%s;",
                       builder->size ? "\n" : "", settings->run_directory, (long long)i, words);
}

/* The half of the workers for large bodies; or the other half, each for one request at a time, and the first
 * one for when all of them are busy.  Of those that are idle the first one is preferred: what it and its
 * session of PostgreSQL need is in the caches of the processor.  A weight decides between idle ones only,
 * since none of them gets a second request. */
static const char *compose_servers(struct control *control, bool is_for_large, bool in_turn)
{
    struct builder builder = {0};
    const struct settings *settings = &control->settings;
    int64_t workers = settings->workers, large = homes_large(workers);
    for (int64_t i = 0; !is_for_large && i < large; i++) {
        long long weight = i < RANKED && !in_turn ? 1LL << RANK_BITS * (RANKED - 1 - i) : 1;
        add_servers(&builder, settings, i, i + 1,
                    arena_printf(control->arena, " max_conns=1 weight=%lld", weight));
    }
    add_servers(&builder, settings, large, workers, is_for_large || !large ? "" : " backup");
    return builder_take(&builder, control->arena).data;
}

/* A line for each word of a list. */
static const char *compose_words(struct arena *arena, const char *before, const char *words,
                                 const char *after)
{
    struct builder builder = {0};
    for (const char *word = words + strspn(words, " "); *word; word += strspn(word, " ")) {
        int size = (int)strcspn(word, " ");
        builder_printf(&builder, "        %s%.*s%s;\n", before, size, word, after);
        word += size;
    }
    const char *text = builder.size ? arena_copy(arena, builder.data, builder.size) : "";
    builder_free(&builder);
    return text;
}

/* How many requests of a client may come at once, in a zone. */
static const char *compose_burst(struct arena *arena, const struct settings *settings, int64_t times)
{
    long long burst = settings->limit_client_burst * times;
    return burst ? arena_printf(arena, " burst=%lld nodelay", burst) : "";
}

/* Is it valid unquoted in nginx's file?  Reports it when not. */
static bool cmd_nginx_is_plain(const char *what, const char *value)
{
    if (*value && !strpbrk(value, " \t\r\n\"'\\;{}$#"))
        return true;
    return message_refuse(
        "nginx: %s \"%s\": expected one word without quotes, blanks and any of \\ ; { } $ #", what, value);
}

static bool are_words_plain(const char *what, const struct option_words *words)
{
    for (int i = 0; i < words->count; i++)
        if (!cmd_nginx_is_plain(what, words->words[i]))
            return false;
    return true;
}

static bool are_plain(const struct control *control, const struct nginx_options *options)
{
    const char *const words[][2] = {
        {"--probe-listen", options->probe_listen},
        {"--certificate", options->certificate},
        {"--key", options->key},
        {"--folder", options->folder},
        {"--pid", options->pid},
        {"--access-log", options->access_log},
        {"--error-log", options->error_log},
        {"--map", options->map.path},
        {"run_directory", control->settings.run_directory},
        {"blob_directory", control->settings.blob_directory},
        {"segment", *control->settings.segment ? control->settings.segment : "-"},
    };
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (!cmd_nginx_is_plain(words[i][0], words[i][1]))
            return false;
    const char *const others[][2] = {
        {"--user", options->user},      {"--acme", options->site.acme},
        {"--root", options->site.root}, {"--console", options->site.console},
        {"--doc", options->site.doc},   {"--include", options->site.include},
    };
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (others[i][1] && !cmd_nginx_is_plain(others[i][0], others[i][1]))
            return false;
    return are_words_plain("--listen", &options->site.listen) &&
           are_words_plain("--http", &options->site.http) && are_words_plain("--name", &options->site.names);
}

static const char *absolute(struct arena *arena, const char *path)
{
    char here[4096];
    if (*path == '/' || !getcwd(here, sizeof here))
        return path;
    return arena_printf(arena, "%s/%s", here, path);
}

/* Without a folder of its own nginx's files are where its package has them, on a disk: /run may be in memory.
 */
static void place_files(struct arena *arena, struct nginx_options *options)
{
    const char *run = "/run", *log = "/var/log/nginx";
    if (options->folder)
        run = log = options->folder = absolute(arena, options->folder);
    else
        options->folder = "/var/lib/nginx";
    if (!options->pid)
        options->pid = arena_printf(arena, "%s/nginx.pid", run);
    if (!options->access_log)
        options->access_log = arena_printf(arena, "%s/access.log", log);
    if (!options->error_log)
        options->error_log = arena_printf(arena, "%s/error.log", log);
}

static void cmd_nginx_complete(struct control *control, struct nginx_options *options)
{
    struct arena *arena = control->arena;
    place_files(arena, options);
    struct site *site = &options->site;
    if (!site->listen.count)
        site->listen = (struct option_words){{"443"}, 1};
    if (!site->names.count)
        site->names = (struct option_words){{"_"}, 1};
    if (site->acme && !site->http.count)
        site->http = (struct option_words){{"80"}, 1};
    site->acme = site->acme ? absolute(arena, site->acme) : NULL;
    site->root = site->root ? absolute(arena, site->root) : NULL;
    site->console = site->console ? absolute(arena, site->console) : NULL;
    site->doc = site->doc ? absolute(arena, site->doc) : NULL;
    site->is_proxied = *control->settings.trusted_proxies &&
                       strcmp(control->settings.client_address_header, "proxy_protocol") == 0;
    options->certificate = absolute(arena, options->certificate);
    options->key = absolute(arena, options->key);
    options->map.path = absolute(arena, map_path(control, &options->map));
    if (!options->template_path)
        options->template_path =
            arena_printf(arena, "%s/nginx.conf.in",
                         control_directory(arena, "STAMPD_NGINX", "nginx", STAMPD_NGINX_DIRECTORY));
}

/* The module that answers without a worker (nginx/module); NULL: it is not installed, or not wanted. */
static const char *find_module(const struct settings *settings)
{
    const char *path = getenv("STAMPD_NGINX_MODULE");
    if (!path)
        path = STAMPD_NGINX_MODULE;
    return settings->public_answers_mb && access(path, R_OK) == 0 ? path : NULL;
}

struct filling_in {
    struct control *control;
    const struct nginx_options *options;
    struct bytes text;
    struct template_value values[VALUES_MOST];
    size_t count;
};

static void fill_in(struct filling_in *filling, const char *name, const char *value)
{
    assert(filling->count < VALUES_MOST);
    filling->values[filling->count++] = (struct template_value){name, value ? value : ""};
}

static bool cmd_nginx_fill(const struct filling_in *filling, const char *block, struct builder *builder)
{
    struct bytes name;
    int line;
    if (block ? template_fill_block(filling->text, block, filling->values, filling->count, builder, &line,
                                    &name)
              : template_fill(filling->text, filling->values, filling->count, builder, &line, &name))
        return true;
    return message_refuse("%s:%d: @%.*s@ is not known", filling->options->template_path, line, (int)name.size,
                          name.data);
}

static void fill_in_numbers(struct filling_in *filling)
{
    const struct settings *settings = &filling->control->settings;
    int64_t connections = CONNECTIONS + 2 * settings->live_connections;
    int digits = snprintf(NULL, 0, "%lld", (long long)settings_anonymous_body(settings));
    bool is_in_parts = settings->limit_upload_bytes < settings->limit_blob_bytes;
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {"ANONYMOUS_BODY_BYTES", settings_anonymous_body(settings)},
        {"ANSWER_BYTES", settings->limit_answer_bytes},
        {"BODY_BYTES", settings->limit_body_bytes},
        {"CONNECTIONS", connections},
        {"DESCRIPTORS", connections + DESCRIPTORS},
        {"LARGE_DIGITS", digits},
        {"SMALL_DIGITS", digits - 1},
        {"LIMIT_BODIES", settings->limit_client_bodies},
        {"LIMIT_CONNECTIONS", settings->limit_client_connections},
        {"LIMIT_NAMESPACE_BODIES", settings->limit_namespace_bodies},
        {"LIMIT_REQUESTS", settings->limit_client_requests},
        {"LIMIT_TASK_REQUESTS", settings->limit_client_requests * TASK_REQUESTS},
        {"LIVE_BODY_BYTES", settings_live_body(settings)},
        {"LIVE_TIMEOUT", settings->live_keepalive_s + READ_TIMEOUT_ABOVE_S},
        {"READ_TIMEOUT", settings->limit_operation_s + READ_TIMEOUT_ABOVE_S},
        {"RESOURCE_CACHE_MB", settings->resource_cache_mb},
        {"TASK_TIMEOUT", settings->limit_task_s + READ_TIMEOUT_ABOVE_S},
        {"UPLOAD_BYTES", is_in_parts ? settings->limit_upload_bytes : settings->limit_blob_bytes},
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        fill_in(filling, numbers[i].name,
                arena_printf(filling->control->arena, "%lld", (long long)numbers[i].value));
}

static void fill_in_texts(struct filling_in *filling)
{
    struct control *control = filling->control;
    struct arena *arena = control->arena;
    const struct settings *settings = &control->settings;
    const struct nginx_options *options = filling->options;
    const struct site *site = &options->site;
    const struct template_value texts[] = {
        {"ACCESS_LOG", strcmp(options->access_log, "off") == 0 ? "" : options->access_log},
        {"ACCESS_LOG_BUFFER", *options->access_log == '/' ? " buffer=64k flush=1s" : ""},
        {"ACME", site->acme},
        {"BLOB_DIRECTORY", settings->blob_directory},
        {"BURST", compose_burst(arena, settings, 1)},
        {"CERTIFICATE", options->certificate},
        {"CLIENT", *settings->exempt_clients ? "$stampd_client" : "$remote_addr"},
        {"CLIENT_ADDRESS_HEADER", settings->client_address_header},
        {"CONSOLE", site->console},
        {"DOC", site->doc},
        {"ERRORS", nginx_refusals(arena, settings, site)},
        {"ERROR_LOG", options->error_log},
        {"EXEMPT", compose_words(arena, "", settings->exempt_clients, " 1")},
        {"FOLDER", options->folder},
        {"HOMES", homes_path(arena, options->map.path)},
        {"HSTS", site_hsts(arena, site, "        ")},
        {"HSTS_INNER", site_hsts(arena, site, "            ")},
        {"HTTPS_PORT", site_port(arena, site)},
        {"HTTP_LISTEN", site_listen(arena, &site->http, "")},
        {"INCLUDE", site->include},
        {"KEY", options->key},
        {"LARGE_SERVERS", compose_servers(control, true, true)},
        {"LISTEN", site_listen(arena, &site->listen,
                               site->is_proxied ? " ssl http2 backlog=1024 proxy_protocol"
                                                : " ssl http2 backlog=1024")},
        {"LOCAL_LISTEN", site_local(arena, site)},
        {"LOG_JSON", settings->log_format == LOG_FORMAT_JSON ? "1" : ""},
        {"LOG_TEXT", settings->log_format == LOG_FORMAT_TEXT ? "1" : ""},
        {"MAP", options->map.path},
        {"PID", options->pid},
        {"PROBE_LISTEN", options->probe_listen},
        {"PROXIES", compose_words(arena, "set_real_ip_from ", settings->trusted_proxies, "")},
        {"PUBLIC_MODULE", find_module(settings)},
        {"RANGE_REFUSAL", nginx_refusals_return(arena, 416)},
        {"RATION", *settings->exempt_clients ? "$stampd_ration" : "$stampd_counted"},
        {"ROOT", site->root},
        {"RUN_DIRECTORY", settings->run_directory},
        {"SEGMENT",
         *settings->segment ? settings->segment : arena_printf(arena, "%s/segment", settings->run_directory)},
        {"SERVERS", compose_servers(control, false, options->in_turn)},
        {"SERVER_NAME", site_names(arena, site)},
        {"STORE_REFUSAL", nginx_refusals_return(arena, NGINX_REFUSALS_STORE)},
        {"STRAY", site->root ? "rewrite ^(.*)$ /@files$1 last;" : "return 404;"},
        {"TASK_BURST", compose_burst(arena, settings, TASK_REQUESTS)},
        {"USER_LINE", options->user ? arena_printf(arena, "user %s;", options->user) : ""},
        {"WORKERS", options->workers ? arena_printf(arena, "%lld", (long long)options->workers) : "auto"},
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        fill_in(filling, texts[i].name, texts[i].value);
}

/* The location of an object store. */
static bool fill_store(struct filling_in filling, const char *name, const struct object_store_place *place,
                       struct builder *builder)
{
    struct arena *arena = filling.control->arena;
    const char *host = object_store_host(place, arena);
    size_t size = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    bool is_https = strncmp(place->endpoint, "https:", strlen("https:")) == 0;
    fill_in(&filling, "STORE", name);
    fill_in(&filling, "STORE_CA_FILE",
            place->ca_file ? place->ca_file : "/etc/ssl/certs/ca-certificates.crt");
    fill_in(&filling, "STORE_HOST", host);
    fill_in(&filling, "STORE_NAME", is_https ? arena_copy(arena, host, size) : "");
    fill_in(&filling, "STORE_SCHEME", is_https ? "https" : "http");
    return cmd_nginx_fill(&filling, "OBJECT_STORE", builder);
}

static bool fill_in_stores(struct filling_in *filling)
{
    char problem[400];
    struct builder builder = {0};
    struct object_stores *stores =
        object_stores_open(filling->control->settings.object_stores_file, problem, sizeof problem);
    bool is_read = stores != NULL, is_filled = true;
    for (size_t i = 0; is_read && is_filled && i < object_stores_count(stores); i++) {
        const struct object_store_place *place;
        const char *name = object_stores_name(stores, i);
        is_read = object_stores_find(stores, name, &place, problem, sizeof problem);
        is_filled = is_read && fill_store(*filling, name, place, &builder);
    }
    object_stores_close(stores);
    if (!is_read)
        message_print("%s", problem);
    fill_in(filling, "OBJECT_STORES", builder_take(&builder, filling->control->arena).data);
    return is_read && is_filled;
}

static bool fill_all(struct control *control, const struct nginx_options *options, struct bytes text,
                     struct builder *builder)
{
    struct filling_in filling = {.control = control, .options = options, .text = text};
    fill_in_numbers(&filling);
    fill_in_texts(&filling);
    return fill_in_stores(&filling) && cmd_nginx_fill(&filling, NULL, builder);
}

/* --- files that others have edited are kept --- */

static const char CHECKSUM[] = "# written by stampctl nginx, sha256 of the lines above: ";

static void add_checksum(struct builder *builder)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    crypto_sha256_hex(builder_bytes(builder), digest);
    builder_printf(builder, "%s%s\n", CHECKSUM, digest);
}

static bool is_as_written(struct bytes text)
{
    size_t tail = sizeof CHECKSUM - 1 + CRYPTO_SHA256_HEX + 1;
    char digest[CRYPTO_SHA256_HEX + 1];
    if (text.size < tail || memcmp(text.data + text.size - tail, CHECKSUM, sizeof CHECKSUM - 1) != 0)
        return false;
    crypto_sha256_hex((struct bytes){text.data, text.size - tail}, digest);
    return memcmp(text.data + text.size - 1 - CRYPTO_SHA256_HEX, digest, CRYPTO_SHA256_HEX) == 0;
}

/* A file that this command did not leave as it is stays under another name. */
static bool keep_edited(struct control *control, const char *path)
{
    struct stat status;
    struct bytes text;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return true;
    if (!control_read_file(control->arena, path, &text))
        return false;
    if (!text.size || is_as_written(text))
        return true;
    for (int number = 1; number < 1000; number++) {
        const char *name = arena_printf(control->arena, "%s.~%d~", path, number);
        if (linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
            message_print("%s was not written by this program, or was edited: it is kept as %s", path, name);
            return true;
        }
        if (errno != EEXIST)
            return message_refuse("%s: %m", name);
    }
    return message_refuse("%s: there are too many copies of it", path);
}

static bool write_configuration(struct control *control, struct nginx_options *options)
{
    struct builder builder = {0};
    struct bytes text;
    cmd_nginx_complete(control, options);
    if (!are_plain(control, options) || !control_read_file(control->arena, options->template_path, &text))
        return false;
    bool is_done = fill_all(control, options, text, &builder);
    if (is_done && options->output && mkdir(options->folder, 0755) != 0 && errno != EEXIST) {
        message_print("%s: %m", options->folder);
        is_done = false;
    }
    add_checksum(&builder);
    if (is_done && options->output)
        is_done = keep_edited(control, options->output) &&
                  control_write_file(control->arena, options->output, builder_bytes(&builder), 0644);
    else if (is_done)
        is_done = fwrite(builder.data, 1, builder.size, stdout) == builder.size;
    builder_free(&builder);
    const char *const included[] = {options->map.path, homes_path(control->arena, options->map.path)};
    for (size_t i = 0; is_done && i < COUNT_OF(included); i++)
        if (access(included[i], R_OK) != 0)
            message_print("%s: %m; `stampctl ns create z` or `stampctl ns map` writes it before nginx starts",
                          included[i]);
    return is_done;
}

int control_nginx(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "nginx", "", "Write nginx's configuration, with the limits of stampd's settings.",
        "With --output, the folder for nginx's own files is created when it is missing; it must belong to "
        "the\n"
        "user that starts nginx.  Check the result with: nginx -t -c FILE\n");
    struct nginx_options options = {.probe_listen = "127.0.0.1:8081"};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        SITE_LINES(&options.site),
        OPTION_TEXT("certificate", "FILE", &options.certificate,
                    "Use this certificate with its chain, PEM.  Required."),
        OPTION_TEXT("key", "FILE", &options.key, "Use this private key of the certificate, PEM.  Required."),
        OPTION_TEXT("user", "NAME", &options.user,
                    "Run nginx's workers as this user, when root starts nginx."),
        OPTION_TEXT("probe-listen", "ADDRESS:PORT", &options.probe_listen,
                    "Listen here for /live, /ready and /metrics (default: 127.0.0.1:8081)."),
        OPTION_NUMBER("local-port", "PORT", &options.site.local_port, 1, 65535,
                      "Serve the same on 127.0.0.1:PORT without TLS, for browsers of this host."),
        OPTION_NUMBER("workers", "N", &options.workers, 1, 256,
                      "Run N processes of nginx (default: one for each processor)."),
        OPTION_FLAG(
            "in-turn", &options.in_turn,
            "Give requests to idle workers of stampd in turn (default: to the first one, whose memory is "
            "warm)."),
        OPTION_TEXT("folder", "FOLDER", &options.folder,
                    "Keep nginx's own files in FOLDER, on a disk (default: those of nginx's package)."),
        OPTION_TEXT("pid", "FILE", &options.pid,
                    "Write nginx's process id to FILE (default: nginx.pid in FOLDER, or in /run)."),
        OPTION_TEXT("map", "FILE", &options.map.path,
                    "Read the map of namespaces from FILE (default: namespaces.map beside the settings)."),
        OPTION_TEXT("access-log", "FILE", &options.access_log,
                    "Log requests to FILE (default: access.log in FOLDER, or in /var/log/nginx); off: none."),
        OPTION_TEXT("error-log", "FILE", &options.error_log,
                    "Log nginx's errors to FILE (default: error.log in FOLDER, or in /var/log/nginx)."),
        OPTION_TEXT("template", "FILE", &options.template_path, "Use another template."),
        {.name = "output",
         .letter = 'o',
         .argument = "FILE",
         .help = "Write to FILE (default: standard output).",
         .text = &options.output},
    };
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!options.certificate || !options.key)
        return message_end(CONTROL_WRONG, "nginx: --certificate and --key are needed");
    return control_load_settings(control) && write_configuration(control, &options) ? CONTROL_DONE
                                                                                    : CONTROL_FAILED;
}
