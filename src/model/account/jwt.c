/* jwt: three parts in base64url, two of them JSON objects. */
#include "model/account/jwt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/coding/base64.h"

enum { VALUES_MOST = 1000, NUMBER_MOST = 40 /* bytes */ };
static const double seconds_most = 1e12;

/* --- parts --- */

static bool jwt_is_letter(char byte)
{
    char letter = byte | 0x20;
    return (letter >= 'a' && letter <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
}

bool jwt_is_one(struct bytes text)
{
    struct bytes rest = text;
    if (!text.size || *text.data != 'e') /* "{" */
        return false;
    for (int dots = 0; dots < 2; dots++) {
        const char *dot = memchr(rest.data, '.', rest.size);
        if (!dot)
            return false;
        rest = (struct bytes){dot + 1, (size_t)(text.data + text.size - dot - 1)};
    }
    return !rest.size || !memchr(rest.data, '.', rest.size);
}

static struct bytes jwt_decode(struct arena *arena, struct bytes part)
{
    size_t size = part.size * 3 / 4;
    for (size_t i = 0; i < part.size; i++)
        if (!jwt_is_letter(part.data[i]))
            return NO_BYTES;
    char *bytes = ARENA_ROOM(arena, char, size + 1);
    return base64_read_strict(part, bytes, size) ? (struct bytes){bytes, size} : NO_BYTES;
}

static const struct json *jwt_read_object(struct arena *arena, struct bytes part)
{
    static const struct json_limits limits = {.depth = 16, .tree_depth = 8, .nodes = 4000};
    struct json *root;
    struct json_problem problem;
    struct bytes text = jwt_decode(arena, part);
    bool is_one = text.data && json_read(arena, text, &limits, &root, &problem) == FAULT_NONE &&
                  root->kind == JSON_OBJECT;
    return is_one ? root : NULL;
}

/* --- the header --- */

static bool is_type(struct bytes type)
{
    static const char *const types[] = {"JWT", "at+jwt", "application/at+jwt", "application/jwt"};
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (type.size == strlen(types[i]) && strncasecmp(type.data, types[i], type.size) == 0)
            return true;
    return false;
}

static const char *jwt_read_header(const struct json *header, struct jwt *jwt)
{
    const struct json *algorithm = json_member(header, "alg"), *type = json_member(header, "typ"),
                      *key = json_member(header, "kid");
    if (!algorithm || algorithm->kind != JSON_STRING ||
        !issuer_find_algorithm(algorithm->value, &jwt->algorithm))
        return "its algorithm is not accepted";
    if (json_member(header, "crit"))
        return "its header has critical members";
    if (type && (type->kind != JSON_STRING || !is_type(type->value)))
        return "its type is not JWT";
    if (key && (key->kind != JSON_STRING || !key->value.size))
        return "its key has no valid name";
    jwt->key = key ? key->value : NO_BYTES;
    return NULL;
}

/* --- claims --- */

/* NumericDate (RFC 7519, section 2): any JSON number, which is rounded down; some issuers write fractions. */
static bool is_number_of_seconds(const struct json *value, int64_t *number_r)
{
    char text[NUMBER_MOST + 1];
    if (!value || value->kind != JSON_NUMBER || value->text.size > NUMBER_MOST)
        return false;
    memcpy(text, value->text.data, value->text.size);
    text[value->text.size] = '\0';
    double number = floor(strtod(text, NULL));
    if (!(fabs(number) < seconds_most))
        return false;
    *number_r = (int64_t)number;
    return true;
}

static const char *read_claims(struct jwt *jwt)
{
    const struct json *issuer = json_member(jwt->claims, "iss"), *subject = json_member(jwt->claims, "sub");
    if (!issuer || issuer->kind != JSON_STRING)
        return "it names no issuer";
    if (!subject || subject->kind != JSON_STRING || !subject->value.size ||
        subject->value.size > ISSUER_SUBJECT_MOST)
        return "it names no subject of 1 to 255 bytes";
    if (!json_member(jwt->claims, "exp"))
        return "it has no time at which it expires";
    if (!is_number_of_seconds(json_member(jwt->claims, "exp"), &jwt->expires_s))
        return "the time at which it expires is no number of seconds";
    jwt->issuer = issuer->value;
    jwt->subject = subject->value;
    return NULL;
}

const char *jwt_read(struct arena *arena, struct bytes text, struct jwt *jwt_r)
{
    struct bytes rest = text, header = bytes_cut(&rest, '.'), claims = bytes_cut(&rest, '.');
    *jwt_r = (struct jwt){.signed_text = {text.data, header.size + 1 + claims.size}};
    const struct json *object = jwt_is_one(text) ? jwt_read_object(arena, header) : NULL;
    if (!object)
        return "its header is malformed";
    const char *wrong = jwt_read_header(object, jwt_r);
    if (wrong)
        return wrong;
    jwt_r->claims = jwt_read_object(arena, claims);
    jwt_r->signature = rest.size ? jwt_decode(arena, rest) : NO_BYTES;
    if (!jwt_r->claims || !jwt_r->signature.data)
        return "it is malformed";
    return read_claims(jwt_r);
}

/* --- validity --- */

static bool jwt_is_listed(const struct json *list, struct bytes text)
{
    for (const struct json *one = list->first; one; one = one->next)
        if (bytes_equal(one->value, text))
            return true;
    return false;
}

static bool is_for_us(const struct json *audience, const struct issuer *issuer)
{
    bool is_found = false;
    if (!audience || audience->kind == JSON_STRING)
        return audience && jwt_is_listed(issuer->audiences, audience->value);
    if (audience->kind != JSON_ARRAY || audience->is_shallow)
        return false;
    for (const struct json *one = audience->first; one; one = one->next) {
        if (one->kind != JSON_STRING)
            return false;
        is_found |= jwt_is_listed(issuer->audiences, one->value);
    }
    return is_found;
}

/* Absent, or not in the future? */
static bool has_come(const struct jwt *jwt, const char *member, int64_t latest_s)
{
    const struct json *value = json_member(jwt->claims, member);
    int64_t time_s;
    return !value || (is_number_of_seconds(value, &time_s) && time_s <= latest_s);
}

const char *jwt_refuse(const struct jwt *jwt, const struct issuer *issuer, int64_t now_s)
{
    if (!bytes_equal(jwt->issuer, issuer->name))
        return "it has another issuer";
    if (!issuer->algorithms[jwt->algorithm])
        return "its algorithm is not accepted";
    if (!is_for_us(json_member(jwt->claims, "aud"), issuer))
        return "it is for another audience";
    if (jwt->expires_s + issuer->leeway_s <= now_s)
        return "it has expired";
    if (!has_come(jwt, "nbf", now_s + issuer->leeway_s) || !has_come(jwt, "iat", now_s + issuer->leeway_s))
        return "it is not valid yet";
    return NULL;
}

/* --- roles --- */

static const struct json *find_claim(const struct jwt *jwt, const struct issuer *issuer)
{
    const struct json *value = jwt->claims;
    for (size_t i = 0; i < issuer->path_count && value; i++) {
        const struct json *member = value->kind == JSON_OBJECT && !value->is_shallow ? value->first : NULL;
        while (member && !bytes_equal(member->name, issuer->path[i]))
            member = member->next;
        value = member;
    }
    return issuer->path_count ? value : NULL;
}

static uint32_t find_role(const struct issuer *issuer, struct bytes value)
{
    for (size_t i = 0; i < issuer->map_count; i++)
        if (bytes_equal(issuer->map[i].value, value))
            return UINT32_C(1) << i;
    return 0;
}

/* An array of texts, or one text: words that are separated by blanks, as in `scope`. */
uint32_t jwt_find_roles(const struct jwt *jwt, const struct issuer *issuer)
{
    const struct json *claim = find_claim(jwt, issuer);
    uint32_t roles = 0;
    if (claim && claim->kind == JSON_STRING) {
        struct bytes rest = claim->value;
        for (int i = 0; rest.size && i < VALUES_MOST; i++)
            roles |= find_role(issuer, bytes_cut(&rest, ' '));
    }
    if (!claim || claim->kind != JSON_ARRAY || claim->is_shallow || claim->count > VALUES_MOST)
        return roles;
    for (const struct json *one = claim->first; one; one = one->next)
        if (one->kind == JSON_STRING)
            roles |= find_role(issuer, one->value);
    return roles;
}
