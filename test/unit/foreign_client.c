/* foreign client: answers applied by the letter of protocol.md, phase after phase. */
#include "foreign_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "edge/json/json.h"

static int64_t number_of(const struct json *object, const char *name)
{
    int64_t number = -1;
    assert_true(json_is_i64(json_member(object, name), &number));
    return number;
}

static const struct json *array_of(const struct json *object, const char *name)
{
    const struct json *array = json_member(object, name);
    assert_non_null(array);
    assert_int_equal(array->kind, JSON_ARRAY);
    return array;
}

static void copy_text(char *to, size_t size, struct bytes text)
{
    assert_true(text.size < size);
    if (text.size)
        memcpy(to, text.data, text.size);
    to[text.size] = '\0';
}

static void write_name(char name[64], struct bytes iclass, struct bytes key)
{
    int size = snprintf(name, 64, "%.*s%s%.*s", (int)iclass.size, iclass.data, key.size ? "." : "",
                        (int)key.size, key.size ? key.data : "");
    assert_true(size > 0 && size < 64);
}

static struct foreign_item *find(const struct foreign_client *client, const char *name)
{
    for (size_t i = 0; i < client->count; i++)
        if (strcmp(client->items[i].name, name) == 0)
            return (struct foreign_item *)&client->items[i];
    return NULL;
}

const struct foreign_item *foreign_client_find(const struct foreign_client *client, struct bytes iclass,
                                               struct bytes key)
{
    char name[64];
    write_name(name, iclass, key);
    return find(client, name);
}

void foreign_client_forget(struct foreign_client *client, int64_t dtime)
{
    client->dtime = dtime;
    for (size_t i = client->count; i-- > 0;)
        if (client->items[i].is_dead && client->items[i].version <= dtime)
            client->items[i] = client->items[--client->count];
}

/* Writes an item or a removal over what was there. */
static void take_item(struct foreign_client *client, const struct json *json, bool is_dead)
{
    const struct json *iclass = json_member(json, "c"), *key = json_member(json, "k");
    const struct json *value = json_member(json, "j"), *text = json_member(json, "s");
    assert_true(iclass && iclass->kind == JSON_STRING &&
                (!key || (key->kind == JSON_STRING && key->value.size)));
    assert_int_equal(json->count, 2 + !!key + !is_dead);
    assert_int_equal(!!value + !!text, !is_dead);
    struct foreign_item item = {.is_dead = is_dead, .is_raw = text, .version = number_of(json, "v")};
    write_name(item.name, iclass->value, key ? key->value : NO_BYTES);
    if (!is_dead)
        copy_text(item.content, sizeof item.content, text ? text->value : value->text);
    struct foreign_item *place = find(client, item.name);
    if (!place) {
        assert_true(client->count < FOREIGN_ITEMS);
        place = &client->items[client->count++];
    }
    *place = item;
}

static bool is_named(const struct json *keys, const char *name)
{
    for (const struct json *key = keys->first; key; key = key->next) {
        assert_int_equal(key->kind, JSON_STRING);
        if (bytes_equal(key->value, bytes_of(name)))
            return true;
    }
    return false;
}

static bool is_among(const struct json *items, const char *name)
{
    for (const struct json *item = items->first; item; item = item->next) {
        const struct json *key = json_member(item, "k");
        char its_name[64];
        write_name(its_name, json_member(item, "c")->value, key ? key->value : NO_BYTES);
        if (strcmp(its_name, name) == 0)
            return true;
    }
    return false;
}

/* What the source names neither as existing, nor as changed, nor as removed, is gone. */
static void drop_rest(struct foreign_client *client, const struct json *keys, const struct json *items,
                      const struct json *dels)
{
    for (size_t i = client->count; i-- > 0;) {
        const char *name = client->items[i].name;
        bool stays =
            client->items[i].is_dead ? is_among(dels, name) : is_named(keys, name) || is_among(items, name);
        if (!stays)
            client->items[i] = client->items[--client->count];
    }
}

void foreign_client_apply(struct foreign_client *client, struct arena *arena, struct bytes json)
{
    struct json *answer = NULL;
    struct json_problem problem;
    const struct json_limits limits = {.depth = 16, .tree_depth = 3};
    assert_int_equal(json_read(arena, json, &limits, &answer, &problem), FAULT_NONE);
    int64_t version = number_of(answer, "v"), ctime = number_of(answer, "ct"),
            dtime = number_of(answer, "dt");
    if (version == 0 || ctime != client->ctime) /* none, or another life */
        client->count = 0;
    client->version = version;
    client->ctime = ctime;
    client->dtime = dtime;
    client->items_came = client->dels_came = 0;
    client->keys_came = false;
    if (version == 0) {
        assert_true(ctime == 0 && dtime == 0);
        assert_int_equal(answer->count, 5);
        return;
    }
    const struct json *items = array_of(answer, "items"), *dels = array_of(answer, "dels");
    const struct json *keys = json_member(answer, "clkeys");
    assert_int_equal(answer->count, 7 + !!keys);
    for (const struct json *item = items->first; item; item = item->next)
        take_item(client, item, false);
    for (const struct json *item = dels->first; item; item = item->next)
        take_item(client, item, true);
    if (keys)
        drop_rest(client, array_of(answer, "clkeys"), items, dels);
    foreign_client_forget(client, dtime);
    client->items_came = items->count;
    client->dels_came = dels->count;
    client->keys_came = keys;
}
