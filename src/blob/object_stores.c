/* object_stores: each section is one store; what is wrong in it concerns those who want this store. */
#include "blob/object_stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/pairs.h"
#include "base/secret.h"

enum { TEXT_MOST = 180, NAME_MOST = 32 };

struct named_store {
    const char *name;
    struct object_store_place place;
    const char *problem; /* the name of a wrong line; NULL: none */
};

struct object_stores {
    char *path;
    struct arena *arena;
    struct named_store stores[OBJECT_STORES_MOST];
    size_t count;
    char *problem; /* of the caller of object_stores_open */
    size_t problem_size;
};

/* All letters, digits and those of `more`. */
static bool object_stores_is_of(const char *text, const char *more)
{
    for (const char *byte = text; *byte; byte++)
        if (!((*byte >= '0' && *byte <= '9') || ((*byte | 0x20) >= 'a' && (*byte | 0x20) <= 'z') ||
              strchr(more, *byte)))
            return false;
    return *text && strlen(text) <= TEXT_MOST;
}

static bool is_endpoint(const char *text)
{
    const char *host = strstr(text, "://");
    return host && (strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0) &&
           object_stores_is_of(host + 3, "-.:[]");
}

static bool is_printable(const char *text)
{
    for (const char *byte = text; *byte; byte++)
        if (*byte <= ' ' || *byte > '~')
            return false;
    return *text && strlen(text) <= TEXT_MOST;
}

/* nginx's configuration has it as it is. */
static bool is_path(const char *text)
{
    return *text == '/' && object_stores_is_of(text, "-_./");
}

static bool set_style(struct object_store_place *place, const char *value)
{
    place->is_path_style = strcmp(value, "on") == 0;
    return place->is_path_style || strcmp(value, "off") == 0;
}

/* Keeps the first problem: an unknown name, or an invalid value. */
static void object_stores_take_line(struct arena *arena, struct named_store *store, const char *name,
                                    const char *value)
{
    struct object_store_place *place = &store->place;
    const struct {
        const char *name, **text;
        bool is_right;
    } texts[] = {
        {"endpoint", &place->endpoint, is_endpoint(value)},
        {"bucket", &place->bucket, object_stores_is_of(value, "-.")},
        {"region", &place->region, object_stores_is_of(value, "-")},
        {"prefix", &place->prefix, object_stores_is_of(value, "-_./") && *value != '/'},
        {"key_id", &place->key_id, object_stores_is_of(value, "-_.+=@")},
        {"secret_key", &place->secret_key, is_printable(value)},
        {"ca_file", &place->ca_file, is_path(value)},
    };
    bool is_right = strcmp(name, "path_style") == 0 && set_style(place, value);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (strcmp(name, texts[i].name) == 0 && texts[i].is_right) {
            *texts[i].text = arena_copy(arena, value, strlen(value));
            is_right = true;
        }
    if (!is_right && !store->problem)
        store->problem = arena_copy(arena, name, strlen(name));
}

static struct named_store *find_object_stores(struct object_stores *stores, const char *name)
{
    for (size_t i = 0; i < stores->count; i++)
        if (strcmp(stores->stores[i].name, name) == 0)
            return &stores->stores[i];
    return NULL;
}

static bool object_stores_refuse(struct object_stores *stores, const char *problem)
{
    snprintf(stores->problem, stores->problem_size, "%s", problem);
    return false;
}

static bool object_stores_take_pair(void *context, const struct named_value *pair)
{
    struct object_stores *stores = context;
    struct named_store *store = find_object_stores(stores, pair->section);
    if (!store && (!object_stores_is_of(pair->section, "-_") || strlen(pair->section) > NAME_MOST))
        return object_stores_refuse(stores,
                                    "expected a section before it, whose name has letters, digits, - and _");
    if (!store && stores->count == OBJECT_STORES_MOST)
        return object_stores_refuse(stores, "there are too many stores");
    if (pair->is_continued)
        return object_stores_refuse(stores, "a value is in one line");
    if (!store) {
        store = &stores->stores[stores->count++];
        store->name = arena_copy(stores->arena, pair->section, strlen(pair->section));
        store->place =
            (struct object_store_place){.region = "us-east-1", .prefix = "", .is_path_style = true};
    }
    object_stores_take_line(stores->arena, store, pair->name, pair->value);
    return true;
}

static bool object_stores_read_file(struct object_stores *stores, const char *path, char *problem,
                                    size_t problem_size)
{
    char detail[200] = "";
    struct pairs pairs = {object_stores_take_pair, stores, detail, sizeof detail, .has_sections = true};
    stores->problem = detail;
    stores->problem_size = sizeof detail;
    if (!secret_is_closed("object_stores_file", path, problem, problem_size))
        return false;
    if (pairs_read(&pairs, path))
        return true;
    if (pairs.number)
        snprintf(problem, problem_size, "%s:%d: %s", path, pairs.number, detail);
    else
        snprintf(problem, problem_size, "%s: %s", path, detail);
    return false;
}

struct object_stores *object_stores_open(const char *path, char *problem, size_t problem_size)
{
    struct object_stores *stores = calloc(1, sizeof *stores);
    char *copy = strdup(path);
    if (!stores || !copy)
        log_fatal("out of memory object stores");
    stores->path = copy;
    stores->arena = arena_create("object stores");
    if (!*path || object_stores_read_file(stores, path, problem, problem_size))
        return stores;
    object_stores_close(stores);
    return NULL;
}

void object_stores_close(struct object_stores *stores)
{
    if (!stores)
        return;
    arena_destroy(stores->arena);
    free(stores->path);
    free(stores);
}

bool object_stores_find(const struct object_stores *stores, const char *name,
                        const struct object_store_place **place_r, char *problem, size_t problem_size)
{
    const struct named_store *store = NULL;
    for (size_t i = 0; i < stores->count && !store; i++)
        store = strcmp(stores->stores[i].name, name) == 0 ? &stores->stores[i] : NULL;
    if (!*stores->path)
        snprintf(problem, problem_size,
                 "%s: there are no object stores: the setting object_stores_file is empty", name);
    else if (!store)
        snprintf(problem, problem_size, "%s: there is no store [%s]", stores->path, name);
    else if (store->problem) /* a value may be a key: it is not shown */
        snprintf(problem, problem_size, "%s: [%s]: %s: unknown name or invalid value", stores->path, name,
                 store->problem);
    else if (!store->place.endpoint || !store->place.bucket || !store->place.key_id ||
             !store->place.secret_key)
        snprintf(problem, problem_size, "%s: [%s]: endpoint, bucket, key_id and secret_key are required",
                 stores->path, name);
    else {
        *place_r = &store->place;
        return true;
    }
    return false;
}

size_t object_stores_count(const struct object_stores *stores)
{
    return stores->count;
}

const char *object_stores_name(const struct object_stores *stores, size_t number)
{
    return stores->stores[number].name;
}
