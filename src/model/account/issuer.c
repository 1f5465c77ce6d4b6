/* issuer: a list of providers, read member by member. */
#include "model/account/issuer.h"

#include <string.h>

#include "base/coding/base64.h"
#include "model/account/account.h"

static const char *const algorithm_words[SIGNATURE_ALGORITHMS] = {
    [SIGNATURE_RS256] = "RS256", [SIGNATURE_ES256] = "ES256", [SIGNATURE_EDDSA] = "EdDSA"};

bool issuer_find_algorithm(struct bytes name, enum signature_algorithm *algorithm_r)
{
    for (int i = 0; i < SIGNATURE_ALGORITHMS; i++)
        if (bytes_equal(name, bytes_of(algorithm_words[i]))) {
            *algorithm_r = (enum signature_algorithm)i;
            return true;
        }
    return false;
}

const char *issuer_algorithm_word(enum signature_algorithm algorithm)
{
    return algorithm_words[algorithm];
}

/* --- addresses --- */

static bool is_host_byte(char byte)
{
    char letter = byte | 0x20;
    return (letter >= 'a' && letter <= 'z') || (byte >= '0' && byte <= '9') || byte == '.' || byte == '-' ||
           byte == ':' || byte == '[' || byte == ']';
}

bool issuer_is_address(struct bytes text, size_t most)
{
    static const char scheme[] = "https://";
    const size_t start = sizeof scheme - 1;
    if (text.size > most || text.size <= start || memcmp(text.data, scheme, start) != 0)
        return false;
    size_t host = start;
    while (host < text.size && is_host_byte(text.data[host]))
        host++;
    if (host == start || (host < text.size && text.data[host] != '/'))
        return false;
    for (size_t i = host; i < text.size; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~' || strchr("#\"\\<>{}|^`", text.data[i]))
            return false;
    return true;
}

/* --- members --- */

static bool issuer_read_name(const struct json *value, struct issuer *issuer)
{
    issuer->name = value->value;
    return value->kind == JSON_STRING && issuer_is_address(value->value, ISSUER_NAME_MOST) &&
           !memchr(value->value.data, '?', value->value.size);
}

static bool read_jwks(const struct json *value, struct issuer *issuer)
{
    issuer->jwks = value->value;
    return value->kind == JSON_STRING && issuer_is_address(value->value, ISSUER_ADDRESS_MOST);
}

static bool is_short_text(const struct json *value)
{
    return value->kind == JSON_STRING && value->value.size && value->value.size <= ISSUER_NAME_MOST;
}

static bool read_audiences(const struct json *value, struct issuer *issuer)
{
    if (value->kind != JSON_ARRAY || !value->count || value->count > ISSUER_AUDIENCES_MOST)
        return false;
    for (const struct json *one = value->first; one; one = one->next)
        if (!is_short_text(one))
            return false;
    issuer->audiences = value;
    return true;
}

static bool read_algorithms(const struct json *value, struct issuer *issuer)
{
    enum signature_algorithm algorithm;
    if (value->kind != JSON_ARRAY || !value->count)
        return false;
    memset(issuer->algorithms, 0, sizeof issuer->algorithms);
    for (const struct json *one = value->first; one; one = one->next) {
        if (one->kind != JSON_STRING || !issuer_find_algorithm(one->value, &algorithm))
            return false;
        issuer->algorithms[algorithm] = true;
    }
    return true;
}

static bool read_path(const struct json *value, struct issuer *issuer)
{
    if (value->kind == JSON_STRING)
        issuer->path[issuer->path_count++] = value->value;
    else if (value->kind != JSON_ARRAY || !value->count || value->count > ISSUER_PATH_MOST)
        return false;
    for (const struct json *one = value->kind == JSON_ARRAY ? value->first : NULL; one; one = one->next) {
        if (one->kind != JSON_STRING)
            return false;
        issuer->path[issuer->path_count++] = one->value;
    }
    return true;
}

static bool read_map(const struct json *value, struct issuer *issuer)
{
    if (value->kind != JSON_OBJECT || !value->count || value->count > ISSUER_MAP_MOST)
        return false;
    for (const struct json *one = value->first; one; one = one->next) {
        if (one->kind != JSON_STRING || !account_is_role(one->value) || !one->name.size)
            return false;
        issuer->map[issuer->map_count++] = (struct issuer_mapping){one->name, one->value};
    }
    return true;
}

static bool issuer_read_roles(const struct json *value, struct issuer *issuer)
{
    const struct json *claim = json_member(value, "claim"), *map = json_member(value, "map");
    return value->kind == JSON_OBJECT && value->count == 2 && claim && map && read_path(claim, issuer) &&
           read_map(map, issuer);
}

static bool read_leeway(const struct json *value, struct issuer *issuer)
{
    return json_is_i64(value, &issuer->leeway_s) && issuer->leeway_s >= 0 &&
           issuer->leeway_s <= ISSUER_LEEWAY_MOST;
}

static const struct {
    const char *name;
    bool (*read)(const struct json *value, struct issuer *issuer);
} members[] = {{"issuer", issuer_read_name},    {"audiences", read_audiences}, {"jwks", read_jwks},
               {"algorithms", read_algorithms}, {"roles", issuer_read_roles},  {"leeway_s", read_leeway}};

static bool issuer_read_member(const struct json *member, struct issuer *issuer)
{
    for (size_t i = 0; i < COUNT_OF(members); i++)
        if (bytes_equal(member->name, bytes_of(members[i].name)))
            return members[i].read(member, issuer);
    return false;
}

static bool read_one(const struct json *value, struct issuer *issuer)
{
    *issuer = (struct issuer){.jwks = BYTES(""), .algorithms = {true, true, true}, .leeway_s = 60};
    if (value->kind != JSON_OBJECT)
        return false;
    for (const struct json *member = value->first; member; member = member->next)
        if (!issuer_read_member(member, issuer))
            return false;
    crypto_sha256(issuer->name, issuer->digest);
    return issuer->name.size && issuer->audiences;
}

/* --- the list --- */

bool issuer_read(struct arena *arena, const struct json *value, const struct issuers **issuers_r)
{
    static const struct json_limits limits = {.depth = 6, .tree_depth = 6, .nodes = 1000};
    struct json *root;
    struct json_problem problem;
    if (value->kind != JSON_ARRAY || json_read(arena, value->text, &limits, &root, &problem) ||
        root->count > ISSUER_MOST)
        return false;
    struct issuers *issuers = ARENA_NEW(arena, struct issuers);
    for (const struct json *one = root->first; one; one = one->next) {
        struct issuer *issuer = &issuers->list[issuers->count];
        if (!read_one(one, issuer) || issuer_find(issuers, issuer->name))
            return false;
        issuers->count++;
    }
    *issuers_r = issuers->count ? issuers : NULL;
    return true;
}

const struct issuer *issuer_find(const struct issuers *issuers, struct bytes name)
{
    for (size_t i = 0; issuers && i < issuers->count; i++)
        if (bytes_equal(issuers->list[i].name, name))
            return &issuers->list[i];
    return NULL;
}

/* --- names --- */

/* The texts have no NUL. */
static struct bytes digest(struct arena *arena, const char *use, struct bytes one, struct bytes other)
{
    unsigned char sum[CRYPTO_SHA256];
    struct builder text = {0};
    builder_add(&text, use, strlen(use) + 1);
    builder_add_bytes(&text, one);
    builder_add(&text, "", 1);
    builder_add_bytes(&text, other);
    crypto_sha256(builder_bytes(&text), sum);
    builder_clear(&text, SIZE_MAX);
    base64_add(&text, (struct bytes){(const char *)sum, sizeof sum});
    return builder_take(&text, arena);
}

struct bytes issuer_account(struct arena *arena, struct bytes issuer, struct bytes subject)
{
    char *id = (char *)digest(arena, "stampd account", issuer, subject).data;
    id[ACCOUNT_ID - 1] = 'x';
    return (struct bytes){id, ACCOUNT_ID};
}

bool issuer_is_account(struct bytes id)
{
    return id.size == ACCOUNT_ID && id.data[ACCOUNT_ID - 1] == 'x';
}

struct bytes issuer_document_id(struct arena *arena, struct bytes issuer)
{
    return digest(arena, "stampd issuer", issuer, BYTES(""));
}
