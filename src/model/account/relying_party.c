/* relying_party: see the header. */
#include "model/account/relying_party.h"

#include <string.h>

enum { ID_MOST = 253, LABEL_MOST = 63, NAME_MOST = 100 };

static bool relying_party_is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
}

/* Labels of letters, digits and inner hyphens; not an address in digits alone. */
static bool is_domain(struct bytes id)
{
    struct bytes rest = id, label = NO_BYTES;
    while (rest.size) {
        label = bytes_cut(&rest, '.');
        if (!label.size || label.size > LABEL_MOST || !relying_party_is_letter(label.data[0]) ||
            !relying_party_is_letter(label.data[label.size - 1]))
            return false;
        for (size_t i = 0; i < label.size; i++)
            if (!relying_party_is_letter(label.data[i]) && label.data[i] != '-')
                return false;
    }
    return id.size && id.size <= ID_MOST && id.data[id.size - 1] != '.' && *label.data > '9';
}

static bool take_prefix(struct bytes *text, struct bytes prefix)
{
    if (text->size < prefix.size || memcmp(text->data, prefix.data, prefix.size) != 0)
        return false;
    *text = (struct bytes){text->data + prefix.size, text->size - prefix.size};
    return true;
}

static bool is_port(struct bytes port)
{
    int64_t number;
    return port.size && port.data[0] > '0' && port.data[0] <= '9' && bytes_to_i64(port, &number) &&
           number <= UINT16_MAX;
}

static bool relying_party_is_within(struct bytes host, struct bytes id)
{
    if (host.size <= id.size)
        return bytes_equal(host, id);
    size_t before = host.size - id.size;
    return host.data[before - 1] == '.' && memcmp(host.data + before, id.data, id.size) == 0;
}

static bool is_origin(struct bytes origin, struct bytes id)
{
    bool is_local = bytes_equal(id, BYTES("localhost"));
    if (!take_prefix(&origin, BYTES("https://")) && (!is_local || !take_prefix(&origin, BYTES("http://"))))
        return false;
    struct bytes host = origin;
    const char *colon = host.size ? memchr(host.data, ':', host.size) : NULL;
    if (colon) {
        host.size = (size_t)(colon - host.data);
        if (!is_port((struct bytes){colon + 1, origin.size - host.size - 1}))
            return false;
    }
    return is_domain(host) && relying_party_is_within(host, id);
}

/* --- reading --- */

static bool are_origins(const struct json *origins, struct bytes id)
{
    if (origins->kind != JSON_ARRAY || !origins->count || origins->count > RELYING_PARTY_ORIGINS_MOST)
        return false;
    for (const struct json *one = origins->first; one; one = one->next)
        if (one->kind != JSON_STRING || !is_origin(one->value, id))
            return false;
    return true;
}

static bool relying_party_is_name(const struct json *name)
{
    return name->kind == JSON_STRING && name->value.size && name->value.size <= NAME_MOST;
}

static bool are_known(const struct json *object)
{
    for (const struct json *member = object->first; member; member = member->next)
        if (!bytes_equal(member->name, BYTES("rp")) && !bytes_equal(member->name, BYTES("name")) &&
            !bytes_equal(member->name, BYTES("origins")) && !bytes_equal(member->name, BYTES("strict")))
            return false;
    return true;
}

struct relying_party *relying_party_read(struct arena *arena, const struct json *value)
{
    static const struct json_limits limits = {.depth = 2, .tree_depth = 2, .nodes = 64};
    struct json *object;
    struct json_problem problem;
    if (value->kind != JSON_OBJECT || json_read(arena, value->text, &limits, &object, &problem) ||
        !are_known(object))
        return NULL;
    const struct json *id = json_member(object, "rp"), *name = json_member(object, "name");
    const struct json *origins = json_member(object, "origins"), *strict = json_member(object, "strict");
    if (!id || id->kind != JSON_STRING || !is_domain(id->value) || (name && !relying_party_is_name(name)) ||
        (origins && !are_origins(origins, id->value)) ||
        (strict && strict->kind != JSON_TRUE && strict->kind != JSON_FALSE))
        return NULL;
    struct relying_party *party = ARENA_NEW(arena, struct relying_party);
    party->id = arena_copy(arena, id->value.data, id->value.size);
    party->name = name ? name->value : id->value;
    party->origins = origins;
    party->is_strict = strict && strict->kind == JSON_TRUE;
    return party;
}

bool relying_party_admits(const struct relying_party *party, struct bytes origin)
{
    struct bytes own = origin, id = bytes_of(party->id);
    if (!is_origin(origin, id))
        return false;
    if (!party->origins && take_prefix(&own, BYTES("https://")) && bytes_equal(own, id))
        return true;
    const struct json *origins = party->origins ? party->origins : party->listed;
    for (const struct json *one = origins ? origins->first : NULL; one; one = one->next)
        if (bytes_equal(one->value, origin))
            return true;
    return false;
}
