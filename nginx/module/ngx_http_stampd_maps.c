/* ngx_http_stampd_maps: nginx evaluates a dozen maps for each request, most of them with expressions, and
 * nearly always with the same result: a request without a body has no large one, an answer with the status
 * 200 is no refusal.  Each function here returns what its map (nginx/nginx.conf.in) would return for such a
 * request, and asks the map for every other one, so the maps decide what is not usual, and all of it where
 * this module is not installed.
 *
 * The configuration says by the name of a variable, $stampd_maps_1, which maps it has.  A map that changes
 * in its usual values raises the number there and here: a module and a configuration of different releases
 * work together then, and only without this. */
#include "ngx_http_stampd_maps.h"

#include "base/bytes.h"

static const ngx_str_t ngx_http_stampd_maps_number = ngx_string("stampd_maps_1");

enum {
    CODE_MOST = 16,
    CLASS_MOST = 16,
    OPERATION_MOST = 64,
    SMALL_LENGTH_DIGITS = 4,
    SMALL_LENGTH_END = 10000,
    NETWORK_BYTES = 8
};

/* A variable in the memory of the configuration that has it: the next one may fail, and this goes on. */
typedef struct {
    ngx_http_get_variable_pt map;
    uintptr_t data;
} ngx_http_stampd_map_t;

static ngx_int_t ngx_http_stampd_maps_ask(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
    const ngx_http_stampd_map_t *map = (const ngx_http_stampd_map_t *)data;
    return map->map(r, v, map->data);
}

static ngx_int_t ngx_http_stampd_maps_set(ngx_http_variable_value_t *v, const u_char *data, size_t size)
{
    v->valid = 1;
    v->no_cacheable = v->not_found = v->escape = 0;
    v->len = (unsigned)size;
    v->data = (u_char *)data;
    return NGX_OK;
}

static ngx_int_t ngx_http_stampd_maps_set_empty(ngx_http_variable_value_t *v)
{
    return ngx_http_stampd_maps_set(v, (const u_char *)"", 0);
}

/* --- what the request has --- */

/* By the name as variables have it: in small letters, with _ for -. */
static ngx_uint_t ngx_http_stampd_maps_has_header(ngx_http_request_t *r, struct bytes name)
{
    ngx_list_part_t *part = &r->headers_in.headers.part;
    for (; part; part = part->next) {
        ngx_table_elt_t *header = part->elts;
        for (ngx_uint_t i = 0; i < part->nelts; i++) {
            size_t k = 0;
            if (header[i].key.len != name.size)
                continue;
            while (k < name.size) {
                u_char ch = ngx_tolower(header[i].key.data[k]);
                if ((ch == '-' ? '_' : ch) != (u_char)name.data[k])
                    break;
                k++;
            }
            if (k == name.size)
                return 1;
        }
    }
    return 0;
}

static ngx_uint_t ngx_http_stampd_maps_has_no_length(ngx_http_request_t *r)
{
    return !r->headers_in.content_length && r->headers_in.content_length_n < 0 && !r->headers_in.chunked;
}

/* Its length has few digits. */
static ngx_uint_t ngx_http_stampd_maps_is_small(ngx_http_request_t *r)
{
    const ngx_table_elt_t *length = r->headers_in.content_length;
    return length && length->value.len && length->value.len <= SMALL_LENGTH_DIGITS;
}

typedef enum { PLACE_OTHER, PLACE_OPERATION, PLACE_DOCUMENT } ngx_http_stampd_place_t;

static ngx_uint_t ngx_http_stampd_maps_is_word(u_char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
}

static ngx_uint_t ngx_http_stampd_maps_is_code(u_char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9');
}

/* "/ns/op/name" or "/ns/doc/Class/id", with or without arguments, as it was sent: the code of the namespace,
 * and what the access log has of it, up to the end of the name or of the class. */
static ngx_http_stampd_place_t ngx_http_stampd_maps_cut(ngx_http_request_t *r, ngx_str_t *code_r,
                                                        ngx_str_t *place_r)
{
    u_char *at = r->unparsed_uri.data, *end = at + r->unparsed_uri.len, *begin;
    place_r->data = at;
    if (end - at < (ptrdiff_t)sizeof "/a/op/" || *at++ != '/' || *at < 'a' || *at > 'z')
        return PLACE_OTHER;
    for (begin = at; at < end && ngx_http_stampd_maps_is_code(*at);)
        at++;
    *code_r = (ngx_str_t){(size_t)(at - begin), begin};
    if (code_r->len > CODE_MOST)
        return PLACE_OTHER;
    if (end - at > 4 && ngx_memcmp(at, "/op/", 4) == 0) {
        for (begin = at += 4; at < end && (ngx_http_stampd_maps_is_word(*at) || *at == '_');)
            at++;
        place_r->len = (size_t)(at - place_r->data);
        return at > begin && at - begin <= OPERATION_MOST && (at == end || *at == '?') ? PLACE_OPERATION
                                                                                       : PLACE_OTHER;
    }
    if (end - at <= 5 || ngx_memcmp(at, "/doc/", 5) != 0)
        return PLACE_OTHER;
    begin = at += 5;
    if (*at < 'A' || *at > 'Z')
        return PLACE_OTHER;
    while (at < end && ngx_http_stampd_maps_is_word(*at))
        at++;
    place_r->len = (size_t)(at - place_r->data);
    if (at - begin > CLASS_MOST || at == end || *at++ != '/')
        return PLACE_OTHER;
    while (at < end && *at != '/' && *at != '?')
        at++;
    return at == end || *at == '?' ? PLACE_DOCUMENT : PLACE_OTHER;
}

/* --- the maps --- */

static ngx_int_t ngx_http_stampd_maps_ns(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t code, place;
    if (ngx_http_stampd_maps_cut(r, &code, &place) == PLACE_OTHER)
        return ngx_http_stampd_maps_ask(r, v, data);
    return ngx_http_stampd_maps_set(v, code.data, code.len);
}

static ngx_int_t ngx_http_stampd_maps_place(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                                            uintptr_t data)
{
    ngx_str_t code, place;
    u_char *text;
    switch (ngx_http_stampd_maps_cut(r, &code, &place)) {
    case PLACE_OPERATION:
        return ngx_http_stampd_maps_set(v, place.data, place.len);
    case PLACE_DOCUMENT:
        text = ngx_pnalloc(r->pool, place.len + 2);
        if (!text)
            return NGX_ERROR;
        ngx_memcpy(ngx_cpymem(text, place.data, place.len), "/*", 2);
        return ngx_http_stampd_maps_set(v, text, place.len + 2);
    case PLACE_OTHER:
    default:
        return ngx_http_stampd_maps_ask(r, v, data);
    }
}

/* Of one without a body: nothing; of an operation whose body is below the least limit that matters here, too.
 * Behind that limit, which is that of all locations but those for large bodies, a worker judges. */
static ngx_int_t ngx_http_stampd_maps_large(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                                            uintptr_t data)
{
    const ngx_http_core_loc_conf_t *core = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    ngx_str_t code, place;
    if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD | NGX_HTTP_OPTIONS)) &&
        ngx_http_stampd_maps_has_no_length(r))
        return ngx_http_stampd_maps_set_empty(v);
    if (r->method == NGX_HTTP_POST && ngx_http_stampd_maps_is_small(r) &&
        core->client_max_body_size >= SMALL_LENGTH_END &&
        ngx_http_stampd_maps_cut(r, &code, &place) == PLACE_OPERATION)
        return ngx_http_stampd_maps_set_empty(v);
    return ngx_http_stampd_maps_ask(r, v, data);
}

static ngx_int_t ngx_http_stampd_maps_body(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                                           uintptr_t data)
{
    if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) && ngx_http_stampd_maps_has_no_length(r))
        return ngx_http_stampd_maps_set_empty(v);
    if (ngx_http_stampd_maps_is_small(r))
        return ngx_http_stampd_maps_set_empty(v);
    return ngx_http_stampd_maps_ask(r, v, data);
}

/* Of one without this header: nothing. */
#define NGX_HTTP_STAMPD_MAPS_HEADER(map, header)                                                             \
    static ngx_int_t map(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)                \
    {                                                                                                        \
        return ngx_http_stampd_maps_has_header(r, BYTES(header)) ? ngx_http_stampd_maps_ask(r, v, data)      \
                                                                 : ngx_http_stampd_maps_set_empty(v);        \
    }
NGX_HTTP_STAMPD_MAPS_HEADER(ngx_http_stampd_maps_is_encoded, "content_encoding")
NGX_HTTP_STAMPD_MAPS_HEADER(ngx_http_stampd_maps_given_id, "x_request_id")
NGX_HTTP_STAMPD_MAPS_HEADER(ngx_http_stampd_maps_host, "origin")

/* Of an answer by the module, or of JSON. */
static ngx_int_t ngx_http_stampd_maps_buffering(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                                                uintptr_t data)
{
    static const struct bytes json = {"application/json", sizeof "application/json" - 1};
    const ngx_table_elt_t *type = r->upstream ? r->upstream->headers_in.content_type : NULL;
    if (!r->upstream ||
        (type && bytes_equal((struct bytes){(const char *)type->value.data, type->value.len}, json)))
        return ngx_http_stampd_maps_set_empty(v);
    return ngx_http_stampd_maps_ask(r, v, data);
}

/* What is no error is no refusal. */
static ngx_int_t ngx_http_stampd_maps_counts(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                                             uintptr_t data)
{
    ngx_uint_t status = r->headers_out.status;
    if (!r->err_status && status >= NGX_HTTP_OK && status < NGX_HTTP_BAD_REQUEST)
        return ngx_http_stampd_maps_set(v, (const u_char *)"0", 1);
    return ngx_http_stampd_maps_ask(r, v, data);
}

/* An address, of version 6 its network. */
static ngx_int_t ngx_http_stampd_maps_counted(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                                              uintptr_t data)
{
    struct sockaddr *address = r->connection->sockaddr;
    if (address->sa_family == AF_INET)
        return ngx_http_stampd_maps_set(v, (u_char *)&((struct sockaddr_in *)address)->sin_addr,
                                        sizeof(struct in_addr));
    if (address->sa_family == AF_INET6)
        return ngx_http_stampd_maps_set(v, ((struct sockaddr_in6 *)address)->sin6_addr.s6_addr,
                                        NETWORK_BYTES);
    return ngx_http_stampd_maps_ask(r, v, data);
}

static ngx_int_t ngx_http_stampd_maps_token(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                                            uintptr_t data)
{
    const ngx_time_t *now = ngx_timeofday();
    u_char *text = ngx_pnalloc(r->pool, 3 * (NGX_INT64_LEN + 1) + NGX_TIME_T_LEN + 4);
    if (!text)
        return NGX_ERROR;
    u_char *end = ngx_sprintf(text, "%P-%uA-%ui-%T.%03M", ngx_pid, r->connection->number,
                              r->connection->requests, now->sec, now->msec);
    return ngx_http_stampd_maps_set(v, text, (size_t)(end - text));
}

/* --- in their places --- */

static const struct {
    ngx_str_t name;
    ngx_http_get_variable_pt usual;
} ngx_http_stampd_maps[] = {
    {ngx_string("stampd_ns"), ngx_http_stampd_maps_ns},
    {ngx_string("stampd_place"), ngx_http_stampd_maps_place},
    {ngx_string("stampd_large"), ngx_http_stampd_maps_large},
    {ngx_string("stampd_body"), ngx_http_stampd_maps_body},
    {ngx_string("stampd_is_encoded"), ngx_http_stampd_maps_is_encoded},
    {ngx_string("stampd_given_id"), ngx_http_stampd_maps_given_id},
    {ngx_string("stampd_host"), ngx_http_stampd_maps_host},
    {ngx_string("stampd_buffering"), ngx_http_stampd_maps_buffering},
    {ngx_string("stampd_counts"), ngx_http_stampd_maps_counts},
    {ngx_string("stampd_counted"), ngx_http_stampd_maps_counted},
    {ngx_string("stampd_token"), ngx_http_stampd_maps_token},
};

/* NULL: the configuration has none of this name. */
static ngx_http_variable_t *ngx_http_stampd_maps_find(ngx_conf_t *cf, const ngx_str_t *name)
{
    ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    const ngx_hash_key_t *keys = core->variables_keys->keys.elts;
    for (ngx_uint_t i = 0; i < core->variables_keys->keys.nelts; i++)
        if (keys[i].key.len == name->len && ngx_memcmp(keys[i].key.data, name->data, name->len) == 0)
            return keys[i].value;
    return NULL;
}

ngx_int_t ngx_http_stampd_maps_take(ngx_conf_t *cf)
{
    if (!ngx_http_stampd_maps_find(cf, &ngx_http_stampd_maps_number))
        return NGX_OK;
    for (ngx_uint_t i = 0; i < sizeof ngx_http_stampd_maps / sizeof *ngx_http_stampd_maps; i++) {
        ngx_http_variable_t *variable = ngx_http_stampd_maps_find(cf, &ngx_http_stampd_maps[i].name);
        if (!variable || !variable->get_handler)
            continue;
        ngx_http_stampd_map_t *map = ngx_palloc(cf->pool, sizeof *map);
        if (!map)
            return NGX_ERROR;
        *map = (ngx_http_stampd_map_t){variable->get_handler, variable->data};
        variable->get_handler = ngx_http_stampd_maps[i].usual;
        variable->data = (uintptr_t)map;
    }
    return NGX_OK;
}
