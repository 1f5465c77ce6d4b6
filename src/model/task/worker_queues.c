/* worker_queues: reading the declarations of queues. */
#include "model/task/worker_queues.h"

#include "base/schedule.h"
#include "edge/crypto/crypto.h"
#include "model/account/account.h"

bool worker_queues_is_operation(struct bytes name)
{
    bool is_letter =
        name.size && ((*name.data >= 'a' && *name.data <= 'z') || (*name.data >= 'A' && *name.data <= 'Z'));
    for (size_t i = 0; i < name.size; i++)
        if (!memchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", name.data[i], 65))
            return false;
    return is_letter && name.size <= 32;
}

static bool worker_queues_read_names(const struct json *value, size_t most, bool (*is_one)(struct bytes name),
                                     const struct json **names_r)
{
    if (value->kind != JSON_ARRAY || value->is_shallow || value->count > most)
        return false;
    for (const struct json *name = value->first; name; name = name->next)
        if (name->kind != JSON_STRING || !is_one(name->value))
            return false;
    *names_r = value;
    return true;
}

static bool worker_queues_read_key(const struct json *value, struct bytes *key_r)
{
    bool is_digest = value->kind == JSON_STRING && value->value.size == CRYPTO_SHA256_HEX;
    for (size_t i = 0; is_digest && i < CRYPTO_SHA256_HEX; i++)
        is_digest = memchr("0123456789abcdef", value->value.data[i], 16) != NULL;
    if (is_digest)
        *key_r = value->value;
    return is_digest;
}

static bool read_requests(const struct json *value, enum worker_requests *requests_r)
{
    static const char *const words[] = {[WORKER_REQUESTS_NOBODY] = "nobody",
                                        [WORKER_REQUESTS_ACCOUNTS] = "accounts",
                                        [WORKER_REQUESTS_ANYBODY] = "anybody"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (value->kind == JSON_STRING && bytes_equal(value->value, bytes_of(words[i]))) {
            *requests_r = (enum worker_requests)i;
            return true;
        }
    return false;
}

static bool worker_queues_read_number(const struct json *value, int64_t least, int64_t most,
                                      int64_t *number_r)
{
    return json_is_i64(value, number_r) && *number_r >= least && *number_r <= most;
}

static bool read_retries(const struct json *value, struct bytes *retries_r)
{
    *retries_r = value->value;
    return value->kind == JSON_STRING && value->value.size <= WORKER_QUEUES_RETRIES_BYTES &&
           !memchr(value->value.data, 0, value->value.size) && schedule_is_retries(value->value);
}

static bool worker_queues_read_member(const struct json *member, struct worker_queue *queue)
{
    int64_t number;
    if (bytes_equal(member->name, BYTES("ops")))
        return worker_queues_read_names(member, WORKER_QUEUES_OPERATIONS, worker_queues_is_operation,
                                        &queue->operations);
    if (bytes_equal(member->name, BYTES("roles")))
        return worker_queues_read_names(member, WORKER_QUEUES_ROLES, account_is_role, &queue->roles);
    if (bytes_equal(member->name, BYTES("key")))
        return worker_queues_read_key(member, &queue->key);
    if (bytes_equal(member->name, BYTES("request")))
        return read_requests(member, &queue->requests);
    if (bytes_equal(member->name, BYTES("claim_s")))
        return worker_queues_read_number(member, 1, WORKER_QUEUES_CLAIM_MOST_S, &queue->claim_s);
    if (bytes_equal(member->name, BYTES("retries")))
        return read_retries(member, &queue->retries);
    if (!bytes_equal(member->name, BYTES("qn")) ||
        !worker_queues_read_number(member, WORKER_QUEUES_FIRST, WORKER_QUEUES_END - 1, &number))
        return false;
    queue->number = (int)number;
    return true;
}

static bool has_name(const struct json *names, struct bytes name)
{
    for (const struct json *one = names ? names->first : NULL; one; one = one->next)
        if (bytes_equal(one->value, name))
            return true;
    return false;
}

/* Of the queues before it: the number, and every operation, belong to no other. */
static bool is_apart(const struct worker_queues *queues, const struct worker_queue *queue)
{
    if (!queue->number || worker_queues_find(queues, queue->number))
        return false;
    for (const struct json *one = queue->operations ? queue->operations->first : NULL; one; one = one->next)
        if (worker_queues_of(queues, one->value))
            return false;
    return true;
}

bool worker_queues_read(struct arena *arena, const struct json *value, const struct worker_queues **queues_r)
{
    static const struct json_limits limits = {.depth = 4, .tree_depth = 3, .nodes = 4096};
    struct worker_queues *queues = ARENA_NEW(arena, struct worker_queues);
    struct json_problem problem;
    struct json *root;
    if (value->kind != JSON_ARRAY || value->count > COUNT_OF(queues->queues) ||
        json_read(arena, value->text, &limits, &root, &problem) != FAULT_NONE)
        return false;
    for (const struct json *one = root->first; one; one = one->next) {
        struct worker_queue queue = {.claim_s = WORKER_QUEUES_CLAIM_S};
        if (one->kind != JSON_OBJECT)
            return false;
        for (const struct json *member = one->first; member; member = member->next)
            if (!worker_queues_read_member(member, &queue))
                return false;
        if (!is_apart(queues, &queue))
            return false;
        queues->queues[queues->count++] = queue;
    }
    *queues_r = queues;
    return true;
}

const struct worker_queue *worker_queues_find(const struct worker_queues *queues, int number)
{
    for (size_t i = 0; queues && i < queues->count; i++)
        if (queues->queues[i].number == number)
            return &queues->queues[i];
    return NULL;
}

const struct worker_queue *worker_queues_of(const struct worker_queues *queues, struct bytes operation)
{
    for (size_t i = 0; queues && i < queues->count; i++)
        if (has_name(queues->queues[i].operations, operation))
            return &queues->queues[i];
    return NULL;
}

uint32_t worker_queues_by_key(const struct worker_queues *queues, struct bytes digest)
{
    uint32_t found = 0;
    for (size_t i = 0; queues && i < queues->count; i++)
        if (queues->queues[i].key.size && crypto_equal(queues->queues[i].key, digest))
            found |= UINT32_C(1) << queues->queues[i].number;
    return found;
}

uint32_t worker_queues_by_roles(const struct worker_queues *queues, const struct bytes *roles, size_t count)
{
    uint32_t found = 0;
    for (size_t i = 0; queues && i < queues->count; i++)
        for (size_t k = 0; k < count; k++)
            if (has_name(queues->queues[i].roles, roles[k]))
                found |= UINT32_C(1) << queues->queues[i].number;
    return found;
}

size_t worker_queues_operations(const struct worker_queues *queues)
{
    size_t count = 0;
    for (size_t i = 0; queues && i < queues->count; i++)
        count += queues->queues[i].operations ? queues->queues[i].operations->count : 0;
    return count;
}
