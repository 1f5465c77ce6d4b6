/* issuer_fetch: one client for each fetch: fetches are rare. */
#include "operation/issuers/issuer_fetch.h"

#include "edge/http.h"

enum { TIMEOUT_MS = 3000, CONNECT_TIMEOUT_MS = 2000, STATUS_OK = 200 };

struct fetch {
    const struct settings *settings;
    struct arena *arena;
};

static const char *issuer_fetch_explain(struct arena *arena, const char *what,
                                        const struct http_result *result)
{
    if (result->is_out_of_reach)
        return arena_printf(arena, "The address of %s is not a public one.", what);
    if (!result->status)
        return arena_printf(arena, "No answer with %s: %s.", what, result->reason);
    return arena_printf(arena, "The request for %s was answered with status %d.", what, result->status);
}

/* NULL: fetched, into the arena. */
static const char *issuer_fetch_get(const struct fetch *fetch, const char *what, struct bytes address,
                                    struct bytes *text_r)
{
    static const char *const headers[] = {"Accept: application/json, application/jwk-set+json", NULL};
    const char *ca_file = fetch->settings->issuer_ca_file, *problem = NULL;
    struct http_result result;
    struct http *http = http_open(&(struct http_options){
        .parallel = 1,
        .ca_file = *ca_file ? ca_file : NULL,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .reach = fetch->settings->issuer_addresses == ISSUER_ADDRESSES_ANY ? HTTP_EVERYWHERE : HTTP_PUBLIC,
        .answer_most = KEY_SET_BYTES_MOST,
    });
    http_run(http,
             &(struct http_request){.method = "GET",
                                    .url = arena_copy(fetch->arena, address.data, address.size),
                                    .headers = headers,
                                    .timeout_ms = TIMEOUT_MS},
             &result);
    if (result.status == STATUS_OK)
        *text_r =
            (struct bytes){arena_copy(fetch->arena, result.body.data, result.body.size), result.body.size};
    else
        problem = issuer_fetch_explain(fetch->arena, what, &result);
    http_close(http);
    return problem;
}

/* --- discovery --- */

static const char *read_configuration(struct arena *arena, const struct issuer *issuer, struct bytes text,
                                      struct bytes *address_r)
{
    static const struct json_limits limits = {.depth = 16, .tree_depth = 1, .nodes = 2000};
    struct json *root;
    struct json_problem problem;
    if (json_read(arena, text, &limits, &root, &problem))
        return "The configuration of the issuer is not JSON.";
    const struct json *name = json_member(root, "issuer"), *address = json_member(root, "jwks_uri");
    if (!name || name->kind != JSON_STRING || !bytes_equal(name->value, issuer->name))
        return "The configuration is that of another issuer.";
    if (!address || address->kind != JSON_STRING || !issuer_is_address(address->value, ISSUER_ADDRESS_MOST))
        return "The configuration of the issuer has no jwks_uri that begins with https.";
    *address_r = address->value;
    return NULL;
}

static const char *discover(const struct fetch *fetch, const struct issuer *issuer, struct bytes *address_r)
{
    struct bytes text, name = issuer->name;
    while (name.data[name.size - 1] == '/')
        name.size--;
    const char *address =
        arena_printf(fetch->arena, "%.*s/.well-known/openid-configuration", (int)name.size, name.data);
    const char *problem = issuer_fetch_get(fetch, "the configuration", bytes_of(address), &text);
    return problem ? problem : read_configuration(fetch->arena, issuer, text, address_r);
}

const char *issuer_fetch(const struct settings *settings, struct arena *arena, const struct issuer *issuer,
                         struct key_set *set_r)
{
    const struct fetch fetch = {settings, arena};
    struct bytes address = issuer->jwks, text;
    const char *problem = address.size ? NULL : discover(&fetch, issuer, &address);
    if (!problem)
        problem = issuer_fetch_get(&fetch, "the keys", address, &text);
    if (problem)
        return problem;
    const char *wrong = key_set_read(arena, text, set_r);
    return wrong ? arena_printf(arena, "The set of keys is refused: %s.", wrong) : NULL;
}
