/* fuzz_token: what an OpenID provider and its users send: tokens, sets of keys; and the configuration of
 * issuers. The first byte chooses: "t" a token, whose header and claims follow as two lines in plain text;
 * "r" a token as it is; "k" a set of keys; "i" a list of issuers. */
#include "fuzz.h"

#include "base/coding/base64.h"
#include "model/account/issuer.h"
#include "model/account/jwt.h"
#include "model/account/key_set.h"

const char fuzz_target[] = "token";

#define ISSUERS                                                                                              \
    "[{\"issuer\":\"https://a\",\"audiences\":[\"app\",\"api\"],\"roles\":{\"claim\":[\"g\",\"r\"],\"map\":" \
    "{\"staff\":\"editor\",\"x\":\"reader\"}}}]"

static const struct issuers *read_issuers(struct arena *arena, struct bytes text)
{
    static const struct json_limits limits = {.depth = 32, .tree_depth = 1};
    const struct issuers *issuers = NULL;
    struct json_problem problem;
    struct json *root;
    if (json_read(arena, text, &limits, &root, &problem) || !issuer_read(arena, root, &issuers))
        return NULL;
    return issuers;
}

static bool lies_in(struct bytes part, struct bytes text)
{
    return part.data >= text.data && part.data + part.size <= text.data + text.size;
}

static void check_token(struct arena *arena, struct bytes text)
{
    const struct issuers *issuers = read_issuers(arena, BYTES(ISSUERS));
    struct jwt jwt;
    assert(issuers && issuers->count == 1);
    if (jwt_read(arena, text, &jwt))
        return;
    assert(jwt_is_one(text) && lies_in(jwt.signed_text, text) && jwt.signed_text.size < text.size);
    assert(jwt.subject.size && jwt.subject.size <= ISSUER_SUBJECT_MOST && jwt.signature.size &&
           jwt.issuer.data);
    assert(issuer_is_account(issuer_account(arena, jwt.issuer, jwt.subject)));
    assert(!(jwt_find_roles(&jwt, &issuers->list[0]) >> issuers->list[0].map_count));
    if (jwt_refuse(&jwt, &issuers->list[0], 1000))
        return;
    assert(bytes_equal(jwt.issuer, BYTES("https://a")) && jwt.expires_s > 940);
    assert(jwt_refuse(&jwt, &issuers->list[0], jwt.expires_s + 60));
}

static void add_line(struct builder *token, struct bytes *rest)
{
    base64_add(token, bytes_cut(rest, '\n'));
    builder_add_text(token, ".");
}

/* Encoded, so that changes of the text reach the parsers. */
static void check_plain(struct arena *arena, struct bytes text)
{
    struct builder token = {0};
    add_line(&token, &text);
    add_line(&token, &text);
    builder_add_text(&token, "c2lnbmF0dXJl");
    check_token(arena, builder_bytes(&token));
    builder_free(&token);
}

static void check_keys(struct arena *arena, struct bytes text)
{
    struct key_set set, again;
    struct builder written = {0};
    const char *wrong = key_set_read(arena, text, &set);
    assert(set.count <= KEY_SET_KEYS_MOST && (wrong != NULL) == !set.count);
    builder_add_text(&written, "{\"keys\":");
    key_set_write(&written, &set);
    builder_add_text(&written, "}");
    wrong = key_set_read(arena, builder_bytes(&written), &again);
    assert(again.count == set.count && (wrong != NULL) == !set.count);
    for (size_t i = 0; i < set.count; i++) {
        assert(set.keys[i].numbers.algorithm == again.keys[i].numbers.algorithm);
        assert(bytes_equal(set.keys[i].name, again.keys[i].name));
        int place = key_set_find(&set, set.keys[i].name, set.keys[i].numbers.algorithm);
        assert(place == (int)i || place == KEY_SET_AMBIGUOUS);
    }
    builder_free(&written);
}

static void check_issuers(struct arena *arena, struct bytes text)
{
    const struct issuers *issuers = read_issuers(arena, text);
    for (size_t i = 0; issuers && i < issuers->count; i++) {
        const struct issuer *issuer = &issuers->list[i];
        assert(issuer_find(issuers, issuer->name) == issuer && issuer->audiences->count);
        assert(issuer_is_address(issuer->name, ISSUER_NAME_MOST) && issuer->map_count <= ISSUER_MAP_MOST);
        assert(issuer->leeway_s >= 0 && issuer->leeway_s <= ISSUER_LEEWAY_MOST);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct arena *arena = arena_create("fuzz");
    struct bytes text = {(const char *)data + 1, size - 1};
    if (*data == 't')
        check_plain(arena, text);
    else if (*data == 'r')
        check_token(arena, text);
    else if (*data == 'k')
        check_keys(arena, text);
    else if (*data == 'i')
        check_issuers(arena, text);
    arena_destroy(arena);
    return 0;
}
