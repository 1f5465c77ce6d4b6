/* ngx_http_stampd_module: answers reads of documents that anybody may have from the shared segment of stampd,
 * and leaves all other requests to the workers.  Each process of nginx maps the slots and the public answers
 * of the segment, read-only; what it may use of them, and why that is never stale, is decided by the workers'
 * own code (src/segment/public_view.h).
 *
 *     stampd_segment FILE;    http: the segment
 *     stampd_counts SOCKET;   http: where each process reports how many answers it has given
 *     stampd_public on|off;   location
 *
 * The master of nginx maps the segment, since its processes may have no right to open the file.  When the
 * segment is another file than before, or has other sizes, a process opens it itself, if it may; else all
 * requests are declined until nginx is reloaded. */
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <sys/mman.h>
#include <sys/random.h>

#include "base/coding/hex.h"
#include "base/coding/siphash.h"
#include "ngx_http_stampd_maps.h"
#include "segment/public_view.h"

typedef struct {
    ngx_str_t segment, counts;
    ngx_int_t ns, database, given_id; /* indexes of variables */
    ngx_uint_t is_used;               /* in some location */
    void *memory;                     /* the mapping; NULL: none */
    size_t size;
    dev_t device;
    ino_t inode;
    time_t tried; /* to open the segment last */
    struct public_view view;
} ngx_http_stampd_main_conf_t;

typedef struct {
    ngx_flag_t is_public;
} ngx_http_stampd_loc_conf_t;

/* An answer that was found, in the memory of the request. */
typedef struct {
    ngx_str_t head, body;
    ngx_uint_t status;
} ngx_http_stampd_ctx_t;

static ngx_module_t ngx_http_stampd_module;
static struct siphash_key ngx_http_stampd_key; /* of the ids of requests */
static struct public_copy ngx_http_stampd_copy;
static ngx_uint_t ngx_http_stampd_served; /* not yet reported */
static ngx_event_t ngx_http_stampd_timer;

/* --- the mapping --- */

static void ngx_http_stampd_unmap(void *data)
{
    ngx_http_stampd_main_conf_t *mcf = data;
    if (mcf->memory)
        munmap(mcf->memory, mcf->size);
    mcf->memory = NULL;
}

/* Maps the segment anew, at most once a second. */
static void ngx_http_stampd_map(ngx_http_stampd_main_conf_t *mcf)
{
    struct stat status;
    size_t size;
    if (mcf->tried == ngx_time())
        return;
    mcf->tried = ngx_time();
    int fd = open((const char *)mcf->segment.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && public_view_measure(fd, &size)) {
        void *memory = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
        if (memory != MAP_FAILED) {
            ngx_http_stampd_unmap(mcf);
            mcf->memory = memory;
            mcf->size = size;
            mcf->device = status.st_dev;
            mcf->inode = status.st_ino;
            if (!public_view_open(&mcf->view, memory, size))
                ngx_http_stampd_unmap(mcf);
        }
    }
    close(fd);
}

/* Is it still the file at its path?  One that was removed has no owner any more, and its stamps prove
 * nothing. */
static ngx_uint_t ngx_http_stampd_is_mapped(ngx_http_stampd_main_conf_t *mcf)
{
    struct stat status;
    return mcf->memory && stat((const char *)mcf->segment.data, &status) == 0 &&
           status.st_ino == mcf->inode && status.st_dev == mcf->device;
}

/* --- which requests --- */

/* Headers that may change the answer, beside those that nginx knows. */
static ngx_uint_t ngx_http_stampd_has_foreign_header(ngx_http_request_t *r)
{
    static const ngx_str_t names[] = {ngx_string("origin"), ngx_string("x-stampd-build"),
                                      ngx_string("idempotency-key"), ngx_string("cookie"),
                                      ngx_string("content-encoding")};
    ngx_list_part_t *part = &r->headers_in.headers.part;
    for (; part; part = part->next) {
        ngx_table_elt_t *header = part->elts;
        for (ngx_uint_t i = 0; i < part->nelts; i++)
            for (ngx_uint_t k = 0; k < sizeof names / sizeof *names; k++)
                if (header[i].key.len == names[k].len &&
                    ngx_strncasecmp(header[i].key.data, names[k].data, names[k].len) == 0)
                    return 1;
    }
    return 0;
}

static ngx_uint_t ngx_http_stampd_is_plain(ngx_http_request_t *r)
{
    return r == r->main && (r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) && !r->internal &&
           !r->headers_in.authorization && !r->headers_in.if_match && !r->headers_in.range &&
           r->headers_in.content_length_n <= 0 && !r->headers_in.chunked && !r->headers_in.content_type &&
           !ngx_http_stampd_has_foreign_header(r);
}

static struct bytes ngx_http_stampd_variable(ngx_http_request_t *r, ngx_int_t index)
{
    ngx_http_variable_value_t *value = ngx_http_get_indexed_variable(r, (ngx_uint_t)index);
    return value && !value->not_found ? (struct bytes){(const char *)value->data, value->len} : NO_BYTES;
}

/* Takes what the text begins with; false: it begins otherwise. */
static ngx_uint_t ngx_http_stampd_take(struct bytes *text, struct bytes beginning)
{
    if (text->size < beginning.size || memcmp(text->data, beginning.data, beginning.size) != 0)
        return 0;
    *text = (struct bytes){text->data + beginning.size, text->size - beginning.size};
    return 1;
}

static ngx_uint_t ngx_http_stampd_is_literal(char byte)
{
    return (unsigned char)byte > ' ' && byte != 0x7f && byte != '%' && byte != '?' && byte != '#' &&
           byte != '+' && byte != '\\';
}

/* Cuts "/ns/doc/Class/id", as it was sent; one with escapes, or with arguments, is for a worker.  Of
 * "/ns/op/get?query" the query, as it was sent, is the id. */
static ngx_uint_t ngx_http_stampd_cut(ngx_http_request_t *r, struct bytes ns, struct bytes *class_r,
                                      struct bytes *id_r)
{
    struct bytes rest = {(const char *)r->unparsed_uri.data, r->unparsed_uri.len};
    if (!ns.size || !ngx_http_stampd_take(&rest, BYTES("/")) || !ngx_http_stampd_take(&rest, ns))
        return 0;
    if (ngx_http_stampd_take(&rest, BYTES("/op/get?"))) {
        *class_r = BYTES(PUBLIC_GET);
        *id_r = rest;
        return rest.size != 0;
    }
    if (!ngx_http_stampd_take(&rest, BYTES("/doc/")))
        return 0;
    for (size_t i = 0; i < rest.size; i++)
        if (!ngx_http_stampd_is_literal(rest.data[i]))
            return 0;
    const char *slash = memchr(rest.data, '/', rest.size);
    if (!slash)
        return 0;
    *class_r = (struct bytes){rest.data, (size_t)(slash - rest.data)};
    *id_r = (struct bytes){slash + 1, rest.size - class_r->size - 1};
    return class_r->size && id_r->size && !memchr(id_r->data, '/', id_r->size);
}

/* --- finding --- */

static ngx_int_t ngx_http_stampd_keep(ngx_http_request_t *r, ngx_str_t *kept, struct bytes text)
{
    kept->len = text.size;
    kept->data = ngx_pnalloc(r->pool, text.size + 1);
    if (!kept->data)
        return NGX_ERROR;
    ngx_memcpy(kept->data, text.data, text.size);
    return NGX_OK;
}

/* The status by If-None-Match, which operations do not heed; 0: a worker compares it. */
static ngx_uint_t ngx_http_stampd_status(ngx_http_request_t *r, struct bytes etag)
{
    ngx_table_elt_t *match = r->headers_in.if_none_match;
    if (!match || !etag.size)
        return NGX_HTTP_OK;
    return bytes_equal((struct bytes){(const char *)match->value.data, match->value.len}, etag)
               ? NGX_HTTP_NOT_MODIFIED
               : 0;
}

static ngx_int_t ngx_http_stampd_answer(ngx_http_request_t *r);

/* Before the handler of the location: takes its place when there is an answer. */
static ngx_int_t ngx_http_stampd_handler(ngx_http_request_t *r)
{
    ngx_http_stampd_loc_conf_t *lcf = ngx_http_get_module_loc_conf(r, ngx_http_stampd_module);
    ngx_http_stampd_main_conf_t *mcf = ngx_http_get_module_main_conf(r, ngx_http_stampd_module);
    struct bytes class, id;
    char text[PUBLIC_NAME_BYTES];
    struct public_answer answer;
    if (!lcf->is_public || !ngx_http_stampd_is_plain(r))
        return NGX_DECLINED;
    struct bytes ns = ngx_http_stampd_variable(r, mcf->ns);
    struct bytes database = ngx_http_stampd_variable(r, mcf->database);
    struct bytes name = {text, 0};
    if (database.size && ngx_http_stampd_cut(r, ns, &class, &id))
        name.size = public_view_name(database, ns, class, id, text);
    if (!name.size)
        return NGX_DECLINED;
    if (!ngx_http_stampd_is_mapped(mcf) ||
        !public_view_find(&mcf->view, name, &ngx_http_stampd_copy, &answer)) {
        if (!mcf->memory || !public_view_is_living(&mcf->view))
            ngx_http_stampd_map(mcf);
        return NGX_DECLINED;
    }
    ngx_uint_t status = ngx_http_stampd_status(r, answer.etag);
    ngx_http_stampd_ctx_t *ctx = status ? ngx_pcalloc(r->pool, sizeof *ctx) : NULL;
    if (!ctx)
        return NGX_DECLINED;
    ctx->status = status;
    if (ngx_http_stampd_keep(r, &ctx->head, status == NGX_HTTP_OK ? answer.head : answer.unchanged) ||
        ngx_http_stampd_keep(r, &ctx->body, status == NGX_HTTP_OK ? answer.body : BYTES("")))
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    ngx_http_set_ctx(r, ctx, ngx_http_stampd_module);
    r->content_handler = ngx_http_stampd_answer;
    return NGX_DECLINED;
}

/* --- answering --- */

/* As a worker makes it (src/http/request_id.c), by a key of nginx's own and of the same numbers, in which no
 * other request is like it. */
static ngx_int_t ngx_http_stampd_name_request(ngx_http_request_t *r, ngx_str_t *value)
{
    ngx_http_stampd_main_conf_t *mcf = ngx_http_get_module_main_conf(r, ngx_http_stampd_module);
    struct bytes given = ngx_http_stampd_variable(r, mcf->given_id);
    const ngx_time_t *now = ngx_timeofday();
    const uint64_t numbers[] = {(uint64_t)ngx_pid, r->connection->number, r->connection->requests,
                                (uint64_t)now->sec * 1000 + now->msec};
    uint64_t digest[2];
    if (given.size)
        return ngx_http_stampd_keep(r, value, given);
    value->len = 32;
    value->data = ngx_pnalloc(r->pool, value->len);
    if (!value->data)
        return NGX_ERROR;
    siphash(&ngx_http_stampd_key, (struct bytes){(const char *)numbers, sizeof numbers}, digest);
    hex_write_u64(digest[0], (char *)value->data);
    hex_write_u64(digest[1], (char *)value->data + 16);
    return NGX_OK;
}

static ngx_uint_t ngx_http_stampd_is_name(const ngx_str_t *name, struct bytes text)
{
    return name->len == text.size && ngx_memcmp(name->data, text.data, text.size) == 0;
}

static ngx_int_t ngx_http_stampd_add_header(ngx_http_request_t *r, const ngx_str_t *name, ngx_str_t value)
{
    if (ngx_http_stampd_is_name(name, BYTES("Status")) ||
        ngx_http_stampd_is_name(name, BYTES("Content-Length")))
        return NGX_OK;
    if (ngx_http_stampd_is_name(name, BYTES("Content-Type"))) {
        r->headers_out.content_type = value;
        r->headers_out.content_type_len = value.len;
        return NGX_OK;
    }
    if (ngx_http_stampd_is_name(name, BYTES("X-Request-Id")) &&
        ngx_http_stampd_name_request(r, &value) != NGX_OK)
        return NGX_ERROR;
    ngx_table_elt_t *header = ngx_list_push(&r->headers_out.headers);
    if (!header)
        return NGX_ERROR;
    ngx_memzero(header, sizeof *header);
    header->hash = 1;
    header->key = *name;
    header->value = value;
    if (ngx_http_stampd_is_name(name, BYTES("ETag")))
        r->headers_out.etag = header;
    return NGX_OK;
}

/* Lines "Name: value", each with its end; an empty one is the last. */
static ngx_int_t ngx_http_stampd_add_headers(ngx_http_request_t *r, ngx_str_t head)
{
    while (head.len) {
        u_char *end = memchr(head.data, '\r', head.len);
        u_char *colon = end ? memchr(head.data, ':', (size_t)(end - head.data)) : NULL;
        if (!colon || end - colon < 2)
            return NGX_OK;
        ngx_str_t name = {(size_t)(colon - head.data), head.data};
        ngx_str_t value = {(size_t)(end - colon - 2), colon + 2};
        if (ngx_http_stampd_add_header(r, &name, value) != NGX_OK)
            return NGX_ERROR;
        size_t taken = (size_t)(end - head.data) + 2;
        taken = taken < head.len ? taken : head.len;
        head.data += taken;
        head.len -= taken;
    }
    return NGX_OK;
}

static ngx_int_t ngx_http_stampd_answer(ngx_http_request_t *r)
{
    ngx_http_stampd_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_stampd_module);
    ngx_int_t rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK)
        return rc;
    r->headers_out.status = ctx->status;
    r->headers_out.content_length_n = ctx->status == NGX_HTTP_OK ? (off_t)ctx->body.len : -1;
    r->disable_not_modified = 1;
    if (ngx_http_stampd_add_headers(r, ctx->head) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    ngx_http_stampd_served++;
    if (!ngx_http_stampd_timer.timer_set && !ngx_exiting)
        ngx_add_timer(&ngx_http_stampd_timer, 1000);
    rc = ngx_http_send_header(r);
    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only || ctx->status != NGX_HTTP_OK)
        return rc;
    ngx_buf_t *buf = ngx_calloc_buf(r->pool);
    if (!buf)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    buf->pos = ctx->body.data;
    buf->last = ctx->body.data + ctx->body.len;
    buf->memory = ctx->body.len ? 1 : 0;
    buf->last_buf = 1;
    buf->last_in_chain = 1;
    ngx_chain_t out = {buf, NULL};
    return ngx_http_output_filter(r, &out);
}

/* --- counting --- */

/* Reports to the relay, which counts these answers with those of workers. */
static void ngx_http_stampd_report(ngx_cycle_t *cycle)
{
    ngx_http_stampd_main_conf_t *mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_stampd_module);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    u_char line[32];
    if (!mcf || !ngx_http_stampd_served || mcf->counts.len >= sizeof address.sun_path)
        return;
    ngx_memcpy(address.sun_path, mcf->counts.data, mcf->counts.len);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    size_t size = (size_t)(ngx_sprintf(line, "served %ui", ngx_http_stampd_served) - line);
    if (sendto(fd, line, size, 0, (struct sockaddr *)&address, sizeof address) == (ssize_t)size)
        ngx_http_stampd_served = 0;
    close(fd);
}

static void ngx_http_stampd_tick(ngx_event_t *event)
{
    ngx_http_stampd_report((ngx_cycle_t *)ngx_cycle);
    if (ngx_http_stampd_served && !ngx_exiting)
        ngx_add_timer(event, 1000);
}

/* --- configuration --- */

static void *ngx_http_stampd_create_main_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_stampd_main_conf_t));
}

static void *ngx_http_stampd_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_stampd_loc_conf_t *lcf = ngx_pcalloc(cf->pool, sizeof *lcf);
    if (lcf)
        lcf->is_public = NGX_CONF_UNSET;
    return lcf;
}

static char *ngx_http_stampd_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_stampd_loc_conf_t *outer = parent, *lcf = child;
    ngx_http_stampd_main_conf_t *mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_stampd_module);
    ngx_conf_merge_value(lcf->is_public, outer->is_public, 0);
    mcf->is_used |= lcf->is_public != 0;
    return NGX_CONF_OK;
}

static ngx_int_t ngx_http_stampd_index(ngx_conf_t *cf, const char *text)
{
    ngx_str_t name = {ngx_strlen(text), (u_char *)text};
    return ngx_http_get_variable_index(cf, &name);
}

static ngx_int_t ngx_http_stampd_configure(ngx_conf_t *cf)
{
    ngx_http_stampd_main_conf_t *mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_stampd_module);
    ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    if (!mcf->is_used || !mcf->segment.len)
        return NGX_OK;
    mcf->ns = ngx_http_stampd_index(cf, "stampd_ns");
    mcf->database = ngx_http_stampd_index(cf, "stampd_database");
    mcf->given_id = ngx_http_stampd_index(cf, "stampd_given_id");
    ngx_http_handler_pt *handler = ngx_array_push(&core->phases[NGX_HTTP_PRECONTENT_PHASE].handlers);
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->cycle->pool, 0);
    if (mcf->ns == NGX_ERROR || mcf->database == NGX_ERROR || mcf->given_id == NGX_ERROR || !handler ||
        !cleanup)
        return NGX_ERROR;
    *handler = ngx_http_stampd_handler;
    cleanup->handler = ngx_http_stampd_unmap;
    cleanup->data = mcf;
    return ngx_http_stampd_maps_take(cf);
}

/* The master, which may read the segment. */
static ngx_int_t ngx_http_stampd_init_module(ngx_cycle_t *cycle)
{
    ngx_http_stampd_main_conf_t *mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_stampd_module);
    if (!mcf || !mcf->is_used || !mcf->segment.len)
        return NGX_OK;
    if (getrandom(&ngx_http_stampd_key, sizeof ngx_http_stampd_key, 0) != sizeof ngx_http_stampd_key)
        return NGX_ERROR;
    ngx_http_stampd_map(mcf);
    return NGX_OK;
}

static ngx_int_t ngx_http_stampd_init_process(ngx_cycle_t *cycle)
{
    ngx_http_stampd_timer.handler = ngx_http_stampd_tick;
    ngx_http_stampd_timer.data = &ngx_http_stampd_timer;
    ngx_http_stampd_timer.log = cycle->log;
    ngx_http_stampd_timer.cancelable = 1;
    return NGX_OK;
}

static ngx_command_t ngx_http_stampd_commands[] = {
    {ngx_string("stampd_segment"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, ngx_conf_set_str_slot,
     NGX_HTTP_MAIN_CONF_OFFSET, offsetof(ngx_http_stampd_main_conf_t, segment), NULL},
    {ngx_string("stampd_counts"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, ngx_conf_set_str_slot,
     NGX_HTTP_MAIN_CONF_OFFSET, offsetof(ngx_http_stampd_main_conf_t, counts), NULL},
    {ngx_string("stampd_public"), NGX_HTTP_LOC_CONF | NGX_CONF_FLAG, ngx_conf_set_flag_slot,
     NGX_HTTP_LOC_CONF_OFFSET, offsetof(ngx_http_stampd_loc_conf_t, is_public), NULL},
    ngx_null_command,
};

static ngx_http_module_t ngx_http_stampd_module_ctx = {
    .postconfiguration = ngx_http_stampd_configure,
    .create_main_conf = ngx_http_stampd_create_main_conf,
    .create_loc_conf = ngx_http_stampd_create_loc_conf,
    .merge_loc_conf = ngx_http_stampd_merge_loc_conf,
};

static ngx_module_t ngx_http_stampd_module = {
    NGX_MODULE_V1,
    .ctx = &ngx_http_stampd_module_ctx,
    .commands = ngx_http_stampd_commands,
    .type = NGX_HTTP_MODULE,
    .init_module = ngx_http_stampd_init_module,
    .init_process = ngx_http_stampd_init_process,
    .exit_process = ngx_http_stampd_report,
    NGX_MODULE_V1_PADDING,
};

/* What nginx looks for in a dynamic module. */
#pragma GCC visibility push(default)
extern ngx_module_t *ngx_modules[];
extern char *ngx_module_names[], *ngx_module_order[];
ngx_module_t *ngx_modules[] = {&ngx_http_stampd_module, NULL};
static char ngx_http_stampd_name[] = "ngx_http_stampd_module";
char *ngx_module_names[] = {ngx_http_stampd_name, NULL};
char *ngx_module_order[] = {NULL};
#pragma GCC visibility pop
