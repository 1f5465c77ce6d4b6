/* passkey: see the header. */
#include "model/account/passkey.h"

#include "base/coding/base64.h"
#include "base/builder.h"

enum { END_SIZE = 22 }; /* characters of a challenge that tell it from others of the same millisecond */

static const struct json *passkey_read_object(struct arena *arena, struct bytes text)
{
    static const struct json_limits limits = {.depth = 3, .tree_depth = 3, .nodes = 64};
    struct json *root;
    struct json_problem problem;
    bool is_one = text.data && json_read(arena, text, &limits, &root, &problem) == FAULT_NONE &&
                  root->kind == JSON_OBJECT;
    return is_one ? root : NULL;
}

static bool passkey_read_number(const struct json *object, const char *member, int64_t *number_r)
{
    const struct json *value = json_member(object, member);
    *number_r = 0;
    return value && json_is_i64(value, number_r);
}

static bool passkey_read_text(const struct json *object, const char *member, struct bytes *text_r)
{
    const struct json *value = json_member(object, member);
    bool is_text = value && value->kind == JSON_STRING;
    *text_r = is_text ? value->value : BYTES("");
    return is_text;
}

/* --- keys --- */

bool passkey_read_base64(struct arena *arena, struct bytes text, size_t most, struct bytes *bytes_r)
{
    size_t size = text.size / 4 * 3 + (text.size % 4 ? text.size % 4 - 1 : 0);
    if (size > most || text.size % 4 == 1)
        return false;
    void *data = arena_alloc(arena, size + 1);
    *bytes_r = (struct bytes){data, size};
    return base64_read(text, data, size);
}

bool passkey_read(struct arena *arena, struct bytes content, struct passkey *passkey_r)
{
    struct bytes id, key;
    const struct json *object = passkey_read_object(arena, content);
    struct webauthn_credential *credential = &passkey_r->credential;
    *passkey_r = (struct passkey){0};
    credential->may_backup = json_is_true(object, "backup");
    passkey_read_text(object, "name", &passkey_r->name);
    return passkey_read_text(object, "id", &id) && passkey_read_text(object, "key", &key) &&
           passkey_read_base64(arena, id, WEBAUTHN_ID_MOST, &credential->id) &&
           passkey_read_base64(arena, key, WEBAUTHN_KEY_MOST, &credential->key.key) &&
           passkey_read_number(object, "algorithm", &credential->key.algorithm) &&
           passkey_read_number(object, "count", &credential->count) &&
           passkey_read_number(object, "created", &passkey_r->created) &&
           passkey_read_number(object, "used", &passkey_r->used);
}

static void add_base64(struct builder *text, const char *name, struct bytes bytes)
{
    builder_printf(text, ",\"%s\":\"", name);
    base64_add(text, bytes);
    builder_add_text(text, "\"");
}

struct bytes passkey_write(struct arena *arena, const struct passkey *passkey)
{
    struct builder text = {0};
    const struct webauthn_credential *credential = &passkey->credential;
    builder_printf(&text, "{\"algorithm\":%lld", (long long)credential->key.algorithm);
    add_base64(&text, "id", credential->id);
    add_base64(&text, "key", credential->key.key);
    builder_printf(&text, ",\"count\":%lld,\"created\":%lld,\"used\":%lld", (long long)credential->count,
                   (long long)passkey->created, (long long)passkey->used);
    if (credential->may_backup)
        builder_add_text(&text, ",\"backup\":true");
    if (passkey->name.size)
        json_add_text(&text, ",\"name\":", passkey->name);
    builder_add_text(&text, "}");
    return builder_take(&text, arena);
}

/* --- challenges --- */

struct used_challenge {
    int64_t issued;
    struct bytes end;
};
struct used_challenges {
    int64_t floor;
    struct used_challenge list[PASSKEY_USED_MOST + 1];
    size_t count;
};

/* False: malformed. */
static bool read_used(struct arena *arena, struct bytes content, struct used_challenges *used)
{
    const struct json *object = passkey_read_object(arena, content), *list = json_member(object, "used");
    *used = (struct used_challenges){0};
    if (!passkey_read_number(object, "floor", &used->floor) || !list || list->kind != JSON_ARRAY ||
        list->count > PASSKEY_USED_MOST)
        return false;
    for (const struct json *one = list->first; one; one = one->next) {
        struct used_challenge *next = &used->list[used->count++];
        if (one->kind != JSON_ARRAY || one->count != 2 || !json_is_i64(one->first, &next->issued) ||
            one->first->next->kind != JSON_STRING)
            return false;
        next->end = one->first->next->value;
    }
    return true;
}

static void forget_oldest(struct used_challenges *used)
{
    size_t oldest = 0;
    for (size_t i = 1; i < used->count; i++)
        if (used->list[i].issued < used->list[oldest].issued)
            oldest = i;
    used->floor = used->list[oldest].issued;
    used->list[oldest] = used->list[--used->count];
}

static struct bytes write_used(struct arena *arena, const struct used_challenges *used)
{
    struct builder text = {0};
    builder_printf(&text, "{\"floor\":%lld,\"used\":[", (long long)used->floor);
    for (size_t i = 0; i < used->count; i++) {
        builder_printf(&text, "%s[%lld,", i ? "," : "", (long long)used->list[i].issued);
        json_add_string(&text, used->list[i].end);
        builder_add_text(&text, "]");
    }
    builder_add_text(&text, "]}");
    return builder_take(&text, arena);
}

bool passkey_use_challenge(struct arena *arena, struct bytes content, int64_t issued, struct bytes challenge,
                           struct bytes *content_r)
{
    struct used_challenges used = {0};
    size_t size = challenge.size < END_SIZE ? challenge.size : END_SIZE;
    const struct bytes end = {challenge.data + challenge.size - size, size};
    if (content.data && !read_used(arena, content, &used))
        return false;
    if (issued <= used.floor)
        return false;
    for (size_t i = 0; i < used.count; i++)
        if (bytes_equal(used.list[i].end, end))
            return false;
    used.list[used.count++] = (struct used_challenge){issued, end};
    if (used.count > PASSKEY_USED_MOST)
        forget_oldest(&used);
    *content_r = write_used(arena, &used);
    return true;
}

/* --- client data --- */

const char *passkey_read_client_data(struct arena *arena, const struct relying_party *party,
                                     enum passkey_ceremony ceremony, struct bytes text,
                                     struct bytes *challenge_r)
{
    struct bytes type, origin;
    const struct json *object = passkey_read_object(arena, text);
    const struct json *crossed = json_member(object, "crossOrigin");
    if (!passkey_read_text(object, "type", &type) || !passkey_read_text(object, "challenge", challenge_r) ||
        !passkey_read_text(object, "origin", &origin))
        return "The client data are malformed.";
    if (!bytes_equal(type, ceremony == PASSKEY_CREATE ? BYTES("webauthn.create") : BYTES("webauthn.get")))
        return "The client data are of another ceremony.";
    if ((crossed && crossed->kind != JSON_FALSE) || json_member(object, "topOrigin"))
        return "The page was in a frame of another one.";
    return relying_party_admits(party, origin) ? NULL : "The page is of no origin of the relying party.";
}
