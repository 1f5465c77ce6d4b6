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
};

struct record_rules {
    size_t count;
    struct record_rule list[RECORD_RULES_MOST];
};

static struct bytes copy(struct arena *arena, struct bytes text)
{
    return (struct bytes){arena_copy(arena, text.data, text.size), text.size};
}

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
        right_r->role = copy(arena, (struct bytes){word.data + role.size, word.size - role.size});
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
    struct bytes text = copy(arena, value->value);
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

static bool read_rule(struct arena *arena, const struct json *value, struct record_rule *rule)
{
    *rule = (struct record_rule){0};
    if (value->kind != JSON_OBJECT)
        return false;
    for (const struct json *member = value->first; member; member = member->next)
        if (!bytes_equal(member->name, BYTES("prefix")) && !bytes_equal(member->name, BYTES("read")) &&
            !bytes_equal(member->name, BYTES("write")))
            return false;
    return read_prefix(arena, json_member(value, "prefix"), rule) &&
           read_right(arena, json_member(value, "read"), &rule->read) &&
           read_right(arena, json_member(value, "write"), &rule->write);
}

bool record_rules_read(struct arena *arena, const struct json *value, const struct record_rules **rules_r)
{
    static const struct json_limits limits = {.depth = 3, .tree_depth = 3, .nodes = 256};
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

static bool cut(struct bytes *text, struct bytes start)
{
    if (text->size < start.size || (start.size && memcmp(text->data, start.data, start.size) != 0))
        return false;
    text->data += start.size;
    text->size -= start.size;
    return true;
}

static bool is_about(const struct record_rule *rule, const struct rules_caller *caller, struct bytes key)
{
    if (!cut(&key, rule->head))
        return false;
    return !rule->is_of_account ||
           (caller->account.data && cut(&key, caller->account) && cut(&key, rule->tail));
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
