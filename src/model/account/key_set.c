/* key_set: members of keys, and their numbers in base64url. */
#include "model/account/key_set.h"

#include "base/coding/base64.h"
#include "model/account/issuer.h"

static const char malformed[] = "it is not a JWK set: an object with an array of keys";

/* What a kind of key is called, and its numbers. */
static const struct {
    const char *type, *curve; /* kty; crv, NULL: none */
} kinds[SIGNATURE_ALGORITHMS] = {[SIGNATURE_RS256] = {"RSA", NULL},
                                 [SIGNATURE_ES256] = {"EC", "P-256"},
                                 [SIGNATURE_EDDSA] = {"OKP", "Ed25519"}};

static bool key_set_is_text(const struct json *key, const char *member, const char *expected)
{
    const struct json *value = json_member(key, member);
    return value && value->kind == JSON_STRING && bytes_equal(value->value, bytes_of(expected));
}

static bool find_kind(const struct json *key, enum signature_algorithm *algorithm_r)
{
    for (int i = 0; i < SIGNATURE_ALGORITHMS; i++)
        if (key_set_is_text(key, "kty", kinds[i].type) &&
            (!kinds[i].curve || key_set_is_text(key, "crv", kinds[i].curve))) {
            *algorithm_r = (enum signature_algorithm)i;
            return true;
        }
    return false;
}

/* May it check signatures, by the members that limit its use? */
static bool is_for_signatures(const struct json *key, enum signature_algorithm algorithm)
{
    const struct json *operations = json_member(key, "key_ops");
    bool is_named = !operations;
    for (const struct json *one = operations && operations->kind == JSON_ARRAY ? operations->first : NULL;
         one; one = one->next)
        is_named |= one->kind == JSON_STRING && bytes_equal(one->value, BYTES("verify"));
    bool is_right = !json_member(key, "alg") ||
                    key_set_is_text(key, "alg", issuer_algorithm_word(algorithm)) ||
                    (algorithm == SIGNATURE_EDDSA && key_set_is_text(key, "alg", "Ed25519"));
    return is_named && is_right && (!json_member(key, "use") || key_set_is_text(key, "use", "sig"));
}

static bool has_private_half(const struct json *key)
{
    static const char *const members[] = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"};
    for (size_t i = 0; i < COUNT_OF(members); i++)
        if (json_member(key, members[i]))
            return true;
    return false;
}

/* Absent or malformed: NO_BYTES. */
static struct bytes key_set_read_number(struct arena *arena, const struct json *key, const char *member)
{
    const struct json *value = json_member(key, member);
    if (!value || value->kind != JSON_STRING || !value->value.size)
        return NO_BYTES;
    size_t size = value->value.size * 3 / 4;
    char *number = ARENA_ROOM(arena, char, size + 1);
    return base64_read_strict(value->value, number, size) ? (struct bytes){number, size} : NO_BYTES;
}

/* False: it cannot be used. */
static bool key_set_read_key(struct arena *arena, const struct json *value, struct key_set_key *key)
{
    const struct json *name = json_member(value, "kid");
    *key = (struct key_set_key){0};
    if (value->kind != JSON_OBJECT || !find_kind(value, &key->numbers.algorithm) ||
        !is_for_signatures(value, key->numbers.algorithm) || has_private_half(value) ||
        (name && (name->kind != JSON_STRING || !name->value.size || name->value.size > KEY_SET_NAME_MOST)))
        return false;
    key->name = name ? name->value : NO_BYTES;
    key->numbers.n = key_set_read_number(arena, value, "n");
    key->numbers.e = key_set_read_number(arena, value, "e");
    key->numbers.x = key_set_read_number(arena, value, "x");
    key->numbers.y = key_set_read_number(arena, value, "y");
    struct signature_key *key_itself = signature_open(&key->numbers);
    signature_close(key_itself);
    return key_itself != NULL;
}

const char *key_set_take(struct arena *arena, const struct json *object, struct key_set *set_r)
{
    const struct json *keys = json_member(object, "keys");
    set_r->count = 0;
    if (!keys || keys->kind != JSON_ARRAY || keys->is_shallow)
        return malformed;
    if (keys->count > KEY_SET_KEYS_MOST)
        return "it has more than 32 keys";
    for (const struct json *key = keys->first; key; key = key->next)
        if (key_set_read_key(arena, key, &set_r->keys[set_r->count]))
            set_r->count++;
    return set_r->count ? NULL : "it has no key that this server can use";
}

const char *key_set_read(struct arena *arena, struct bytes text, struct key_set *set_r)
{
    static const struct json_limits limits = {.depth = 8, .tree_depth = 4, .nodes = 2000};
    struct json *root;
    struct json_problem problem;
    set_r->count = 0;
    if (text.size > KEY_SET_BYTES_MOST || json_read(arena, text, &limits, &root, &problem))
        return malformed;
    return key_set_take(arena, root, set_r);
}

static void write_number(struct builder *out, const char *name, struct bytes number)
{
    if (!number.data)
        return;
    builder_printf(out, ",\"%s\":\"", name);
    base64_add(out, number);
    builder_add_text(out, "\"");
}

void key_set_write(struct builder *out, const struct key_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct key_set_key *key = &set->keys[i];
        const struct signature_numbers *numbers = &key->numbers;
        builder_printf(out, "%s{\"kty\":\"%s\"", i ? "," : "[", kinds[numbers->algorithm].type);
        if (kinds[numbers->algorithm].curve)
            builder_printf(out, ",\"crv\":\"%s\"", kinds[numbers->algorithm].curve);
        if (key->name.data)
            json_add_text(out, ",\"kid\":", key->name);
        write_number(out, "n", numbers->n);
        write_number(out, "e", numbers->e);
        write_number(out, "x", numbers->x);
        write_number(out, "y", numbers->y);
        builder_add_text(out, "}");
    }
    builder_add_bytes(out, set->count ? BYTES("]") : BYTES("[]"));
}

int key_set_find(const struct key_set *set, struct bytes name, enum signature_algorithm algorithm)
{
    int found = KEY_SET_NONE;
    for (size_t i = 0; i < set->count; i++) {
        const struct key_set_key *key = &set->keys[i];
        if (key->numbers.algorithm != algorithm ||
            (name.data && !(key->name.data && bytes_equal(name, key->name))))
            continue;
        if (found >= 0)
            return KEY_SET_AMBIGUOUS;
        found = (int)i;
    }
    return found;
}
