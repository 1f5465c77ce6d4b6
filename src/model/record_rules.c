/* record_rules: a list of prefixes. */
#include "model/record_rules.h"

#include <string.h>

#define PLACE "{account}"

enum who { WHO_NOBODY, WHO_ANYONE, WHO_ACCOUNT, WHO_ROLE };

struct record_right {
    enum who who;
    struct bytes role;
};

struct record_rule {
    struct bytes head, tail; /* of the prefix, around {account} */
    bool is_of_account;
    struct record_right read, write;
    struct record_terms terms;
};

struct record_rules {
    size_t count;
    struct record_rule list[RECORD_RULES_MOST];
};

static bool read_right(struct arena *arena, const struct json *value, struct record_right *right_r)
{
    static const struct bytes role = {"role:", 5};
    *right_r = (struct record_right){0};
    if (!value)
        return true;
    if (value->kind != JSON_STRING)
        return false;
    struct bytes word = value->value;
    bool is_role = word.size > role.size && word.size <= role.size + RECORD_RULES_ROLE_MOST &&
                   memcmp(word.data, role.data, role.size) == 0;
    right_r->who = bytes_equal(word, BYTES("anyone"))    ? WHO_ANYONE
                   : bytes_equal(word, BYTES("account")) ? WHO_ACCOUNT
                   : is_role                             ? WHO_ROLE
                                                         : WHO_NOBODY;
    if (is_role)
        right_r->role = arena_keep(arena, (struct bytes){word.data + role.size, word.size - role.size});
    return right_r->who != WHO_NOBODY;
}

static bool is_of_ids(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* An id that another one begins with must not match: what follows it belongs to no id. */
static bool read_prefix(struct arena *arena, const struct json *value, struct record_rule *rule)
{
    if (!value || value->kind != JSON_STRING || value->value.size > RECORD_RULES_PREFIX_MOST)
        return false;
    struct bytes text = arena_keep(arena, value->value);
    const char *place = text.size ? memmem(text.data, text.size, PLACE, sizeof PLACE - 1) : NULL;
    rule->head = text;
    rule->is_of_account = place != NULL;
    if (!place)
        return true;
    rule->head.size = (size_t)(place - text.data);
    rule->tail.data = place + sizeof PLACE - 1;
    rule->tail.size = text.size - rule->head.size - (sizeof PLACE - 1);
    return rule->tail.size && !is_of_ids(rule->tail.data[0]) &&
           !memmem(rule->tail.data, rule->tail.size, PLACE, sizeof PLACE - 1);
}

/* Ten years. */
#define TTL_MOST_MS INT64_C(315360000000)

/* A number of a rule, or a member that the others read; false: it is none. */
static bool record_rules_read_number(const struct json *member, struct record_terms *terms)
{
    const struct {
        const char *name;
        int64_t *number_r, most;
    } numbers[] = {{"ttl_ms", &terms->ttl_ms, TTL_MOST_MS},
                   {"ttl_most_ms", &terms->ttl_most_ms, TTL_MOST_MS},
                   {"bytes", &terms->bytes, INT64_C(1) << 40},
                   {"records", &terms->records, UINT32_MAX},
                   {"caller_bytes", &terms->caller_bytes, INT64_C(1) << 40},
                   {"caller_records", &terms->caller_records, UINT32_MAX}};
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        if (bytes_equal(member->name, bytes_of(numbers[i].name)))
            return json_is_i64(member, numbers[i].number_r) && *numbers[i].number_r >= 1 &&
                   *numbers[i].number_r <= numbers[i].most;
    return bytes_equal(member->name, BYTES("prefix")) || bytes_equal(member->name, BYTES("read")) ||
           bytes_equal(member->name, BYTES("write"));
}

static bool read_rule(struct arena *arena, const struct json *value, struct record_rule *rule)
{
    static const enum record_writers writers[] = {[WHO_ANYONE] = RECORD_WRITERS_ALL,
                                                  [WHO_ACCOUNT] = RECORD_WRITERS_ACCOUNTS,
                                                  [WHO_ROLE] = RECORD_WRITERS_ROLE};
    *rule = (struct record_rule){0};
    if (value->kind != JSON_OBJECT)
        return false;
    for (const struct json *member = value->first; member; member = member->next)
        if (!record_rules_read_number(member, &rule->terms))
            return false;
    const struct json *prefix = json_member(value, "prefix");
    bool is_read = read_prefix(arena, prefix, rule) &&
                   read_right(arena, json_member(value, "read"), &rule->read) &&
                   read_right(arena, json_member(value, "write"), &rule->write);
    if (!is_read || (rule->terms.ttl_most_ms && rule->terms.ttl_ms > rule->terms.ttl_most_ms))
        return false;
    rule->terms.prefix = arena_keep(arena, prefix->value);
    rule->terms.writers = writers[rule->write.who];
    return true;
}

bool record_rules_read(struct arena *arena, const struct json *value, const struct record_rules **rules_r)
{
    static const struct json_limits limits = {.depth = 3, .tree_depth = 3, .nodes = 512};
    struct json_problem problem;
    struct json *list;
    if (json_read(arena, value->text, &limits, &list, &problem) || list->kind != JSON_ARRAY ||
        list->count > RECORD_RULES_MOST)
        return false;
    struct record_rules *rules = ARENA_ARRAY(arena, struct record_rules, 1);
    rules->count = 0;
    for (const struct json *one = list->first; one; one = one->next)
        if (!read_rule(arena, one, &rules->list[rules->count++]))
            return false;
    *rules_r = rules;
    return true;
}

/* --- decisions --- */

static bool record_rules_cut(struct bytes *text, struct bytes start)
{
    if (text->size < start.size || (start.size && memcmp(text->data, start.data, start.size) != 0))
        return false;
    text->data += start.size;
    text->size -= start.size;
    return true;
}

static bool is_about(const struct record_rule *rule, const struct rules_caller *caller, struct bytes key)
{
    if (!record_rules_cut(&key, rule->head))
        return false;
    return !rule->is_of_account || (caller->account.data && record_rules_cut(&key, caller->account) &&
                                    record_rules_cut(&key, rule->tail));
}

static bool is_granted(const struct record_right *right, const struct rules_caller *caller)
{
    if (right->who != WHO_ROLE)
        return right->who == WHO_ANYONE || (right->who == WHO_ACCOUNT && caller->account.data);
    for (size_t i = 0; i < caller->role_count; i++)
        if (bytes_equal(caller->roles[i], right->role))
            return true;
    return false;
}

bool record_rules_allow(const struct record_rules *rules, const struct rules_caller *caller, struct bytes key,
                        bool is_write)
{
    for (size_t i = 0; rules && i < rules->count; i++) {
        const struct record_rule *rule = &rules->list[i];
        if (is_about(rule, caller, key) && is_granted(is_write ? &rule->write : &rule->read, caller))
            return true;
    }
    return false;
}

const struct record_terms *record_rules_terms(const struct record_rules *rules,
                                              const struct rules_caller *caller, struct bytes key)
{
    for (size_t i = 0; rules && i < rules->count; i++)
        if (is_about(&rules->list[i], caller, key) && is_granted(&rules->list[i].write, caller))
            return &rules->list[i].terms;
    return NULL;
}

struct bytes record_rules_seek(struct arena *arena, const struct record_rules *rules,
                               const struct rules_caller *caller, struct bytes key)
{
    struct bytes next = NO_BYTES;
    for (size_t i = 0; rules && i < rules->count; i++) {
        const struct record_rule *rule = &rules->list[i];
        if (!is_granted(&rule->read, caller) || (rule->is_of_account && !caller->account.data))
            continue;
        if (is_about(rule, caller, key))
            return key;
        struct bytes account = rule->is_of_account ? caller->account : BYTES("");
        const char *text =
            arena_printf(arena, "%.*s%.*s%.*s", (int)rule->head.size, rule->head.data, (int)account.size,
                         account.data, (int)rule->tail.size, rule->tail.data ? rule->tail.data : "");
        struct bytes prefix = bytes_of(text);
        if (bytes_compare(prefix, key) > 0 && (!next.data || bytes_compare(prefix, next) < 0))
            next = prefix;
    }
    return next;
}
