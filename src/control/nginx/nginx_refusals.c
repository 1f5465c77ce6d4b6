/* nginx_refusals: one page a status.  A large body is refused by a worker before nginx accepts it; the page
 * takes the fault from the variable $stampd_judged. */
#include "control/nginx/nginx_refusals.h"

#include <stdio.h>

#include "base/fault.h"

struct refusal {
    int status;
    const char *listed; /* as error_page takes it */
    enum fault fault;
    const char *detail;
    const char *args; /* may contain variables of nginx */
    bool is_unknown;  /* whether the request was done */
};

static const struct refusal refusals[] = {
    {400, "400 421 495 496 497 501 505 =400", FAULT_AARG, "The request is not understood.", "", false},
    {401, "401", FAULT_SCLOSED, "Here, a body of this size needs a key in the header Authorization.", "",
     false},
    {403, "403 =", FAULT_SCLOSED, "This address is not for this client.", "", false},
    {404, "404", FAULT_NPATH, NULL, "", false},
    {405, "405", FAULT_AMETHOD, NULL, "", false},
    {408, "408", FAULT_ABODY, "The request came too slowly.", "", false},
    {413, "413", FAULT_ALIMIT, "The body of the request is too large.", "", false},
    {414, "414", FAULT_ALIMIT, "The address of the request is too long.", "", false},
    {415, "415", FAULT_ATYPE, "The body must not be encoded.", "\"body\"", false},
    {416, "416", FAULT_AARG, "The file has no bytes in this range.", "\"Range\"", false},
    {429, "429 =", FAULT_XBUSY, NULL, "$stampd_refused", false},
    {431, "431 494 =431", FAULT_ALIMIT, "The header of the request is too large.", "", false},
    {500, "500", FAULT_XINTERNAL, NULL, "", false},
    {502, "502 =", FAULT_XUNKNOWN, "The server ended before it answered.", "", true},
    {503, "503", FAULT_OSTOPPING, "The server cannot take the request at present.", "", false},
    {504, "504", FAULT_XUNKNOWN, "The server did not answer in time.", "", true},
};

/* The texts contain nothing that is special in JSON or nginx: a test of the configuration would fail. */
static void add_return(struct builder *builder, const struct refusal *refusal)
{
    const char *words = fault_words(refusal->fault);
    builder_printf(builder,
                   "return %d '{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,"
                   "\"code\":\"%s\",\"major\":%d,%s\"message\":\"%s%s%s\",\"args\":[%s]",
                   refusal->status, words, refusal->status, fault_code(refusal->fault),
                   fault_major(refusal->fault), refusal->is_unknown ? "" : "\"phase\":0,", words,
                   refusal->detail ? " " : "", refusal->detail ? refusal->detail : "", refusal->args);
    if (refusal->detail)
        builder_printf(builder, ",\"detail\":\"%s\"", refusal->detail);
    builder_add_text(builder, "}';\n");
}

/* Headers of one status. */
static const char *header_of(const struct refusal *refusal)
{
    if (refusal->status == 405)
        return "            add_header Allow $stampd_methods always;\n";
    if (refusal->status == 403)
        return "            add_header Retry-After $stampd_judged_retry always;\n"
               "            add_header Tus-Resumable $stampd_judged_tus always;\n"
               "            add_header Allow $stampd_judged_methods always;\n";
    if (refusal->status == 415)
        return "            add_header Accept-Encoding $stampd_codings always;\n";
    if (refusal->status == 502)
        return "            add_header Retry-After $stampd_unreached always;\n";
    return refusal->status == 429 || refusal->status == 503 ? "            add_header Retry-After 5 always;\n"
                                                            : "";
}

/* When no process was reached the request was certainly not executed. */
static void add_unreached(struct builder *builder)
{
    static const struct refusal unreached = {
        503, "", FAULT_OSTOPPING, "No process of the server can be reached.", "", false};
    builder_add_text(builder, "            if ($stampd_unreached) {\n                ");
    add_return(builder, &unreached);
    builder_add_text(builder, "            }\n");
}

/* Clients of tus send a part again after 423, and give up after 429; response.c says the same. */
static void add_locked(struct builder *builder, const char *by, const char *args)
{
    const struct refusal locked = {423, "", FAULT_XBUSY, NULL, args, false};
    builder_printf(builder, "            if ($stampd_part_waits = %s) {\n                ", by);
    add_return(builder, &locked);
    builder_add_text(builder, "            }\n");
}

/* The worker's judgement of a large body, when it is another fault than SCLOSED.  auth_request knows 401 and
 * 403 only. */
static void add_judged(struct builder *builder, const struct settings *settings)
{
    char limit[64];
    snprintf(limit, sizeof limit, "\"limit_anonymous_body_bytes\",\"%lld\",\"$content_length\"",
             (long long)settings_anonymous_body(settings));
    const struct refusal judged[] = {
        {400, "", FAULT_AUTF8, NULL, "", false},
        {403, "", FAULT_SKEY, NULL, "\"Authorization\"", false},
        {404, "", FAULT_NNAMESPACE, NULL, "\"$stampd_ns\"", false},
        {404, "", FAULT_NPATH, NULL, "", false},
        {405, "", FAULT_AMETHOD, NULL, "\"$request_method\"", false},
        {413, "", FAULT_ALIMIT, "A larger body needs a key in the header Authorization.", limit, false},
        {410, "", FAULT_OGONE, NULL, "", false},
        {429, "", FAULT_XBUSY, NULL, "", false},
        {503, "", FAULT_OOFF, NULL, "", false},
        {503, "", FAULT_OREADONLY, NULL, "", false},
        {503, "", FAULT_XAWAY, NULL, "", false},
        {503, "", FAULT_OSTOPPING, "The server cannot take the request at present.", "", false},
    };
    static const struct refusal full = {400, "", FAULT_ALIMIT, NULL, "$stampd_full_quota", false};
    builder_add_text(builder, "            if ($stampd_full_quota) {\n                ");
    add_return(builder, &full);
    builder_add_text(builder, "            }\n");
    add_locked(builder, "worker", "");
    add_locked(builder, "room", "\"$stampd_room_limit\",\"$stampd_room_most\"");
    for (size_t i = 0; i < COUNT_OF(judged); i++) {
        if (i + 1 < COUNT_OF(judged))
            builder_printf(builder, "            if ($stampd_judged = \"%s\") {\n",
                           fault_code(judged[i].fault));
        else
            builder_add_text(builder, "            if ($stampd_judged) {\n");
        builder_add_text(builder, "                ");
        add_return(builder, &judged[i]);
        builder_add_text(builder, "            }\n");
    }
}

const char *nginx_refusals_return(struct arena *arena, int status)
{
    static const struct refusal store = {503, "", FAULT_XSTORE, NULL, "", true};
    const struct refusal *refusal = &store;
    struct builder builder = {0};
    for (size_t i = 0; i < COUNT_OF(refusals); i++)
        if (refusals[i].status == status)
            refusal = &refusals[i];
    add_return(&builder, refusal);
    const char *text = arena_copy(arena, builder.data, builder.size - 1);
    builder_free(&builder);
    return text;
}

/* An answer whose range is refused has those of the file already. */
static void add_common_headers(struct builder *builder, const struct refusal *refusal, const char *hsts)
{
    if (refusal->status != 416)
        builder_printf(
            builder,
            "            add_header X-Content-Type-Options nosniff always;\n"
            "            add_header X-Request-Id $stampd_request_id always;\n"
            "            add_header Vary $stampd_origin_vary always;\n"
            "            add_header Access-Control-Allow-Origin $stampd_origin always;\n"
            "            add_header Access-Control-Allow-Credentials $stampd_origin_cookies always;\n"
            "            add_header Access-Control-Expose-Headers $stampd_origin_exposed always;\n"
            "%s",
            hsts);
}

static void add_upload(struct builder *builder, const struct settings *settings)
{
    char limit[64];
    bool may_be_parts = settings->limit_upload_bytes < settings->limit_blob_bytes;
    snprintf(limit, sizeof limit, "\"%s\",\"%lld\",\"$content_length\"",
             may_be_parts ? "limit_upload_bytes" : "limit_blob_bytes",
             (long long)(may_be_parts ? settings->limit_upload_bytes : settings->limit_blob_bytes));
    const struct refusal upload = {
        413,   "",   FAULT_ALIMIT, may_be_parts ? "Send the file in parts." : "The file is too large.",
        limit, false};
    builder_add_text(builder, "            if ($stampd_large = file) {\n                ");
    add_return(builder, &upload);
    builder_add_text(builder, "            }\n");
}

static void add_refusal(struct builder *builder, const struct refusal *refusal,
                        const struct settings *settings, const char *hsts)
{
    builder_printf(builder,
                   "        location = /.stampd/%d {\n"
                   "            internal;\n"
                   "            client_max_body_size 0;\n"
                   "            add_header Cache-Control no-store always;\n",
                   refusal->status);
    add_common_headers(builder, refusal, hsts);
    builder_printf(builder, "%s            default_type application/problem+json;\n", header_of(refusal));
    if (refusal->status == 403)
        add_judged(builder, settings);
    if (refusal->status == 429)
        add_locked(builder, "nginx", refusal->args);
    if (refusal->status == 413)
        add_upload(builder, settings);
    if (refusal->status == 502)
        add_unreached(builder);
    builder_add_text(builder, "            ");
    add_return(builder, refusal);
    builder_add_text(builder, "        }");
}

const char *nginx_refusals(struct arena *arena, const struct settings *settings, const struct site *site)
{
    struct builder builder = {0};
    for (size_t i = 0; i < COUNT_OF(refusals); i++)
        builder_printf(&builder, "        error_page %s /.stampd/%d;\n", refusals[i].listed,
                       refusals[i].status);
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        add_refusal(&builder, &refusals[i], settings, site_hsts(arena, site, "            "));
        builder_printf(&builder, "%s", i + 1 < COUNT_OF(refusals) ? "\n" : "");
    }
    return builder_take(&builder, arena).data;
}
