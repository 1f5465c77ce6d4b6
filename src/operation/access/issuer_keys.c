/* issuer_keys: see the header. */
#include "operation/access/issuer_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "model/account/account.h"
#include "model/document/stamp.h"
#include "operation/tasks/task_wakeup.h"
#include "segment/counts/limiter.h"

enum {
    KIND_ISSUER = LIMITER_ATTEMPTS + 32,
    WISH_MS = ISSUER_KEYS_PAUSE_S * 1000 + 10000, /* a new wish is later than the pause of the last fetch */
    DOUBLINGS_MOST = 20,
};

/* --- the documents --- */

void issuer_keys_name(struct arena *arena, struct bytes issuer,
                      struct document_name names_r[ISSUER_KEYS_DOCUMENTS])
{
    struct bytes id = issuer_document_id(arena, issuer);
    names_r[0] = (struct document_name){BYTES("Issuer"), id};
    names_r[1].class = BYTES("Issuer");
    names_r[1].id = bytes_of(arena_printf(arena, "%.*s-state", (int)id.size, id.data));
}

static struct bytes find_item(const struct document *document, struct bytes class)
{
    return document_exists(document) ? account_find(document, class, BYTES("")) : NO_BYTES;
}

static const struct json *issuer_keys_read_content(struct arena *arena, struct bytes text)
{
    static const struct json_limits limits = {.depth = 8, .tree_depth = 4, .nodes = 2000};
    struct json *root;
    struct json_problem problem;
    bool is_one = text.data && json_read(arena, text, &limits, &root, &problem) == FAULT_NONE;
    return is_one ? root : NULL;
}

static int64_t time_of(const struct json *object, const char *member)
{
    int64_t stamp = json_i64_of(object, member, 0);
    return stamp_is_valid(stamp) ? stamp_to_epoch_ms(stamp) : 0;
}

/* Absent or malformed: never. */
static struct issuer_state issuer_keys_read_state(struct arena *arena, const struct document *document)
{
    return issuer_keys_parse_state(arena, find_item(document, BYTES("State")));
}

enum fault issuer_keys_find_state(struct documents *documents, int ns, struct arena *arena,
                                  const struct issuer *issuer,
                                  struct document_name names_r[ISSUER_KEYS_DOCUMENTS],
                                  struct issuer_state *state_r)
{
    const struct document *document;
    issuer_keys_name(arena, issuer->name, names_r);
    enum fault fault = documents_newest(documents, ns, arena, &names_r[1], 1, &document);
    if (!fault)
        *state_r = issuer_keys_read_state(arena, document);
    return fault;
}

struct issuer_state issuer_keys_parse_state(struct arena *arena, struct bytes content)
{
    const struct json *object = issuer_keys_read_content(arena, content);
    const struct json *problem = json_member(object, "problem");
    int64_t failures = json_i64_of(object, "failures", 0);
    return (struct issuer_state){.fetched_ms = time_of(object, "fetched"),
                                 .tried_ms = time_of(object, "tried"),
                                 .failures = failures > 0 ? failures : 0,
                                 .problem =
                                     problem && problem->kind == JSON_STRING ? problem->value : BYTES("")};
}

struct bytes issuer_keys_write_state(struct arena *arena, const struct issuer_state *state)
{
    struct builder text = {0};
    builder_printf(&text, "{\"tried\":%lld", (long long)stamp_from_epoch_ms(state->tried_ms));
    if (state->fetched_ms)
        builder_printf(&text, ",\"fetched\":%lld", (long long)stamp_from_epoch_ms(state->fetched_ms));
    if (state->failures)
        builder_printf(&text, ",\"failures\":%lld", (long long)state->failures);
    if (state->problem.size)
        json_add_text(&text, ",\"problem\":", state->problem);
    builder_add_text(&text, "}");
    return builder_take(&text, arena);
}

struct bytes issuer_keys_write(struct arena *arena, struct bytes issuer, const struct key_set *set)
{
    struct builder text = {0};
    json_add_text(&text, "{\"issuer\":", issuer);
    builder_add_text(&text, ",\"keys\":");
    key_set_write(&text, set);
    builder_add_text(&text, "}");
    return builder_take(&text, arena);
}

/* After failures the pauses double, up to the age at which keys are fetched again anyway. */
bool issuer_keys_are_due(const struct settings *settings, const struct issuer_state *state, bool is_wanted,
                         int64_t now_ms)
{
    int64_t refresh_ms = settings->issuer_keys_refresh_s * 1000, pause_ms = ISSUER_KEYS_PAUSE_S * 1000;
    int64_t since_ms = now_ms - state->tried_ms;
    int64_t doublings = state->failures - 1 < DOUBLINGS_MOST ? state->failures - 1 : DOUBLINGS_MOST;
    if (since_ms < 0 || !state->tried_ms) /* the clock was set back, or there was none */
        return true;
    if (since_ms < pause_ms || is_wanted)
        return since_ms >= pause_ms;
    if (!state->failures)
        return since_ms >= refresh_ms;
    return since_ms >= refresh_ms || since_ms >= pause_ms << doublings;
}

/* --- keys, ready for use --- */

struct ready_key {
    struct signature_key *key;
    enum signature_algorithm algorithm;
    struct bytes name;
    char name_room[KEY_SET_NAME_MOST];
};
struct issuer_keys {
    int64_t version, fetched_ms, tried_ms;
    struct key_set set; /* its numbers are not kept */
    struct ready_key keys[KEY_SET_KEYS_MOST];
};

static void keep_key(struct issuer_keys *keys, size_t place)
{
    struct key_set_key *read = &keys->set.keys[place];
    struct ready_key *key = &keys->keys[place];
    key->key = signature_open(&read->numbers);
    if (read->name.data) {
        memcpy(key->name_room, read->name.data, read->name.size);
        read->name.data = key->name_room;
    }
    read->numbers = (struct signature_numbers){.algorithm = read->numbers.algorithm};
}

struct issuer_keys *issuer_keys_open(const struct document *document, const struct document *state_document)
{
    struct issuer_keys *keys = calloc(1, sizeof *keys);
    struct arena *arena = arena_create("issuer keys");
    if (!keys)
        log_fatal("out of memory");
    const struct json *object = issuer_keys_read_content(arena, find_item(document, BYTES("Keys")));
    const struct issuer_state state = issuer_keys_read_state(arena, state_document);
    const struct item *item = object ? document_find_item(document, BYTES("Keys"), BYTES("")) : NULL;
    keys->tried_ms = state.tried_ms;
    keys->fetched_ms = state.fetched_ms;
    keys->version = item ? item->version : 0;
    if (!object || key_set_take(arena, object, &keys->set))
        keys->set.count = 0;
    for (size_t i = 0; i < keys->set.count; i++)
        keep_key(keys, i);
    arena_destroy(arena);
    return keys;
}

void issuer_keys_close(struct issuer_keys *keys)
{
    for (size_t i = 0; keys && i < keys->set.count; i++)
        signature_close(keys->keys[i].key);
    free(keys);
}

int64_t issuer_keys_version(const struct issuer_keys *keys)
{
    return keys->version;
}

int64_t issuer_keys_end_ms(const struct settings *settings, const struct issuer_keys *keys)
{
    return keys->set.count ? keys->fetched_ms + settings->issuer_keys_most_s * 1000 : 0;
}

bool issuer_keys_are_recent(const struct issuer_keys *keys, int64_t now_ms)
{
    return keys->tried_ms && now_ms - keys->tried_ms >= 0 &&
           now_ms - keys->tried_ms < ISSUER_KEYS_PAUSE_S * 1000;
}

const struct signature_key *issuer_keys_find(const struct issuer_keys *keys, struct bytes name,
                                             enum signature_algorithm algorithm, bool *is_unknown_r)
{
    int place = key_set_find(&keys->set, name, algorithm);
    *is_unknown_r = place == KEY_SET_NONE;
    return place >= 0 ? keys->keys[place].key : NULL;
}

/* --- wishes --- */

static const struct limiter_rate wishes = {.count = 1, .period_ms = WISH_MS, .burst = 1};

void issuer_keys_want(const struct settings *settings, struct segment *segment, int ns, struct bytes code,
                      struct bytes issuer)
{
    uint64_t key = limiter_key(segment, ns, KIND_ISSUER, issuer);
    if (!limiter_take(segment, key, &wishes, 1, clock_monotonic_ms()))
        task_wakeup_ns(settings, code, stamp_now());
}

bool issuer_keys_are_wanted(struct segment *segment, int ns, struct bytes issuer)
{
    uint64_t key = limiter_key(segment, ns, KIND_ISSUER, issuer);
    return limiter_look(segment, key, &wishes, 1, clock_monotonic_ms()) != 0;
}
