/* nginx_objects: the worker has judged the request, and signed what nginx sends to the store.  What the store
 * answers beside the bytes is not passed on, and its errors become those of the server. */
#include "control/nginx/nginx_objects.h"

#include <string.h>

#include "base/builder.h"
#include "base/fault.h"
#include "control/message.h"
#include "control/nginx/nginx_refusals.h"
#include "blob/object_stores.h"

/* Headers of the worker's answer: nginx forgets it when it asks the store. */
static const char *const kept[][2] = {
    {"etag", "ETag"},
    {"repr_digest", "Repr-Digest"},
    {"content_security_policy", "Content-Security-Policy"},
    {"x_request_id", "X-Request-Id"},
    {"x_stampd_build", "X-Stampd-Build"},
    {"server_timing", "Server-Timing"},
    {"timing_allow_origin", "Timing-Allow-Origin"},
    {"vary", "Vary"},
    {"access_control_allow_origin", "Access-Control-Allow-Origin"},
    {"access_control_allow_credentials", "Access-Control-Allow-Credentials"},
    {"access_control_expose_headers", "Access-Control-Expose-Headers"},
};

/* Of the store's answer, whatever it means by them. */
static const char *const hidden[] = {
    "Accept-Ranges",
    "Access-Control-Allow-Credentials",
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
    "Cache-Control",
    "Content-Disposition",
    "Content-Encoding",
    "Content-Language",
    "Content-MD5",
    "Content-Security-Policy",
    "Content-Type",
    "ETag",
    "Expires",
    "Last-Modified",
    "Link",
    "Location",
    "Refresh",
    "Repr-Digest",
    "Content-Digest",
    "Server-Timing",
    "Set-Cookie",
    "Strict-Transport-Security",
    "Vary",
    "Via",
    "WWW-Authenticate",
    "X-Content-Type-Options",
    "X-Request-Id",
    "x-amz-bucket-region",
    "x-amz-checksum-crc32",
    "x-amz-checksum-crc64nvme",
    "x-amz-checksum-sha256",
    "x-amz-checksum-type",
    "x-amz-delete-marker",
    "x-amz-expiration",
    "x-amz-id-2",
    "x-amz-request-id",
    "x-amz-server-side-encryption",
    "x-amz-storage-class",
    "x-amz-version-id",
};

static void add_headers(struct builder *builder)
{
    builder_add_text(
        builder,
        "            set $stampd_object_authorization $upstream_http_x_stampd_object_authorization;\n"
        "            set $stampd_object_date $upstream_http_x_stampd_object_date;\n"
        "            set $stampd_object_body $upstream_http_x_stampd_object_body;\n"
        "            set $stampd_object_range $upstream_http_x_stampd_object_range;\n"
        "            set $stampd_object_size $upstream_http_x_stampd_object_size;\n"
        "            set $stampd_object_content_digest $stampd_content_digest;\n"
        "            add_header Last-Modified \"\";\n"
        "            add_header Accept-Ranges bytes;\n"
        "            add_header X-Content-Type-Options nosniff;\n"
        "            add_header Content-Digest $stampd_object_content_digest;\n");
    for (size_t i = 0; i < COUNT_OF(kept); i++)
        builder_printf(builder,
                       "            set $stampd_object_%s $upstream_http_%s;\n"
                       "            add_header %s $stampd_object_%s;\n",
                       kept[i][0], kept[i][0], kept[i][1], kept[i][0]);
    for (size_t i = 0; i < COUNT_OF(hidden); i++)
        builder_printf(builder, "            proxy_hide_header %s;\n", hidden[i]);
}

/* A certificate is checked for https: always. */
static void add_tls(struct builder *builder, const struct object_store_place *place, const char *host)
{
    size_t name = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    if (strncmp(place->endpoint, "https:", strlen("https:")) == 0)
        builder_printf(builder,
                       "            proxy_ssl_server_name on;\n"
                       "            proxy_ssl_name %.*s;\n"
                       "            proxy_ssl_verify on;\n"
                       "            proxy_ssl_verify_depth 5;\n"
                       "            proxy_ssl_trusted_certificate %s;\n",
                       (int)name, host,
                       place->ca_file ? place->ca_file : "/etc/ssl/certs/ca-certificates.crt");
}

static void add_store(struct builder *builder, struct arena *arena, const char *name,
                      const struct object_store_place *place, const char *hsts)
{
    const char *host = object_store_host(place, arena);
    int scheme = (int)(strstr(place->endpoint, "://") - place->endpoint);
    builder_printf(builder,
                   "        location /.stampd/objects/%s/ {\n"
                   "            internal;\n"
                   "            gzip off;\n"
                   "%s",
                   name, hsts);
    add_headers(builder);
    builder_printf(
        builder,
        "            proxy_http_version 1.1;\n"
        "            proxy_pass_request_headers off;\n"
        "            proxy_pass_request_body off;\n"
        "            proxy_set_header Host %s;\n"
        "            proxy_set_header Connection \"\";\n"
        "            proxy_set_header Authorization $stampd_object_authorization;\n"
        "            proxy_set_header x-amz-date $stampd_object_date;\n"
        "            proxy_set_header x-amz-content-sha256 $stampd_object_body;\n"
        "            proxy_set_header Range $stampd_object_range;\n"
        "            proxy_connect_timeout 5s;\n"
        "            proxy_send_timeout 10s;\n"
        "            proxy_read_timeout 30s; # between two pieces\n"
        "            proxy_next_upstream error timeout;\n"
        "            proxy_next_upstream_tries 2;\n"
        "            proxy_next_upstream_timeout 10s;\n"
        "            proxy_buffer_size 16k;\n"
        "            proxy_buffers 16 32k;\n"
        "            proxy_busy_buffers_size 64k;\n"
        "            proxy_max_temp_file_size 0; # the store waits for a slow client\n"
        "            proxy_intercept_errors on;\n"
        "            error_page 416 = @stampd_object_range;\n"
        "            error_page 300 301 302 303 304 307 308 400 401 403 404 405 406 408 409 410 411 412 "
        "413 429 500 501 502 503 504 = /.stampd/objects/;\n",
        host);
    add_tls(builder, place, host);
    builder_printf(builder, "            proxy_pass %.*s://%s/;\n        }\n", scheme, place->endpoint, host);
}

/* Files of encrypted namespaces: the decrypter opens the one that the ticket of the worker names. */
static void add_sealed(struct builder *builder, const char *run_directory, const char *hsts)
{
    builder_printf(builder,
                   "        location = /.stampd/sealed/ {\n"
                   "            internal;\n"
                   "            gzip off;\n"
                   "%s",
                   hsts);
    add_headers(builder);
    builder_printf(builder,
                   "            proxy_http_version 1.1;\n"
                   "            proxy_pass_request_headers off;\n"
                   "            proxy_pass_request_body off;\n"
                   "            proxy_set_header Host stampd;\n"
                   "            proxy_set_header Connection close;\n"
                   "            proxy_set_header X-Stampd-File $stampd_object_authorization;\n"
                   "            proxy_set_header X-Stampd-Client $stampd_client;\n"
                   "            proxy_set_header Range $stampd_object_range;\n"
                   "            proxy_buffer_size 16k;\n"
                   "            proxy_buffers 8 32k;\n"
                   "            proxy_busy_buffers_size 64k;\n"
                   "            proxy_max_temp_file_size 0; # nothing of it is on the disk in clear\n"
                   "            proxy_intercept_errors on;\n"
                   "            error_page 416 = @stampd_object_range;\n"
                   "            error_page 400 403 404 405 500 501 502 503 504 = /.stampd/objects/;\n"
                   "            proxy_pass http://unix:%s/files.sock:/;\n"
                   "        }\n",
                   run_directory);
}

static void add_range_answer(struct builder *builder, const char *hsts)
{
    builder_printf(builder,
                   "        location @stampd_object_range {\n"
                   "            internal;\n"
                   "            default_type application/problem+json;\n"
                   "            add_header Cache-Control no-store always;\n"
                   "            add_header Content-Range \"bytes */$stampd_object_size\" always;\n"
                   "            add_header X-Content-Type-Options nosniff always;\n"
                   "%s",
                   hsts);
    for (size_t i = 0; i < COUNT_OF(kept); i++)
        if (strcmp(kept[i][1], "ETag") != 0) /* that of the fault would be meant */
            builder_printf(builder, "            add_header %s $stampd_object_%s always;\n", kept[i][1],
                           kept[i][0]);
    builder_add_text(builder, "            ");
    nginx_refusals_add_range(builder);
    builder_add_text(builder, "        }\n");
}

/* Also of a store that nginx does not know yet: without it the request would come back to a worker. */
static void add_refusal(struct builder *builder, const char *hsts)
{
    const char *words = fault_words(FAULT_XSTORE);
    builder_printf(
        builder,
        "        location /.stampd/objects/ {\n"
        "            internal;\n"
        "            default_type application/problem+json;\n"
        "            add_header Retry-After 5 always;\n"
        "            add_header Cache-Control no-store always;\n"
        "            add_header X-Content-Type-Options nosniff always;\n"
        "            add_header X-Request-Id $stampd_request_id always;\n"
        "%s            return 503 '{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":503,\"code\":\"%s\","
        "\"major\":%d,\"message\":\"%s\",\"args\":[]}';\n"
        "        }\n",
        hsts, words, fault_code(FAULT_XSTORE), fault_major(FAULT_XSTORE), words);
}

const char *nginx_objects(struct control *control, const struct site *site)
{
    struct arena *arena = control->arena;
    const char *hsts = site_hsts(arena, site, "            ");
    char problem[400];
    struct builder builder = {0};
    struct object_stores *stores =
        object_stores_open(control->settings.object_stores_file, problem, sizeof problem);
    bool is_right = stores != NULL;
    for (size_t i = 0; is_right && i < object_stores_count(stores); i++) {
        const struct object_store_place *place;
        const char *name = object_stores_name(stores, i);
        is_right = object_stores_find(stores, name, &place, problem, sizeof problem);
        if (is_right)
            add_store(&builder, arena, name, place, hsts);
    }
    add_sealed(&builder, control->settings.run_directory, hsts);
    add_range_answer(&builder, hsts);
    add_refusal(&builder, hsts);
    object_stores_close(stores);
    if (!is_right)
        message_print("%s", problem);
    const char *text = is_right ? arena_copy(arena, builder.data, builder.size) : NULL;
    builder_free(&builder);
    return text;
}
