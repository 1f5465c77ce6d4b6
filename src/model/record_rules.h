/* record_rules: who may read and write which records: the member `records` of a namespace's configuration
 * (model/namespace.h).  Pure.
 *
 *   [{"prefix": "presence.{account}.", "read": "anyone", "write": "account"}, …]
 *
 * A rule is about the keys that begin with `prefix`, where {account} is the caller's account; for a caller
 * without one such a rule says nothing.  `read` and `write` are "anyone", "account" (whoever has signed in)
 * or "role:NAME"; absent: nobody.  What no rule allows is refused, but to the administrator.
 *
 * A rule that allows to write has terms: how long what is written by it may stay, and how much all callers
 * together, and each of them, may have: the members ttl_ms, ttl_most_ms, bytes, records, caller_bytes and
 * caller_records.  Of several rules that allow a caller to write a key, the first one counts. */
#ifndef STAMPD_MODEL_RECORD_RULES_H
#define STAMPD_MODEL_RECORD_RULES_H

#include "base/arena.h"
#include "base/bytes.h"
#include "edge/json/json.h"
#include "model/rules/rules.h"

enum { RECORD_RULES_MOST = 32, RECORD_RULES_PREFIX_MOST = 128, RECORD_RULES_ROLE_MOST = 64 };

struct record_rules;

/* The callers that may write by a rule: all, those with an account, or those with a role.  The more callers
 * there may be, the less each gets where the rule has no number of its own. */
enum record_writers { RECORD_WRITERS_ALL, RECORD_WRITERS_ACCOUNTS, RECORD_WRITERS_ROLE };

/* Numbers of a rule; 0: it has none. */
struct record_terms {
    struct bytes prefix; /* as the rule has it */
    enum record_writers writers;
    int64_t ttl_ms;      /* of a record that is stored without */
    int64_t ttl_most_ms; /* the end is at most so far from each command */
    int64_t bytes, records, caller_bytes, caller_records;
};

#define RECORD_RULES_EXPECTED                                                                                \
    "An array of at most 32 objects is expected: prefix, a text of at most 128 bytes, in which a "           \
    "character like . or / follows {account}; read and write, each anyone, account or role:NAME; ttl_ms, "   \
    "ttl_most_ms, bytes, records, caller_bytes and caller_records, each a positive integer."

/* In the arena; false: malformed.  `value` may be shallow. */
MUST_USE bool record_rules_read(struct arena *arena, const struct json *value,
                                const struct record_rules **rules_r);
/* May the caller, who is not the administrator, read or write the record of this key?  NULL: no rules. */
bool record_rules_allow(const struct record_rules *rules, const struct rules_caller *caller, struct bytes key,
                        bool is_write);
/* The terms of the first rule that allows the caller to write the record of this key; NULL: there is none. */
const struct record_terms *record_rules_terms(const struct record_rules *rules,
                                              const struct rules_caller *caller, struct bytes key);
/* The first key from this one on that some rule for reading could be about, in the arena or the key itself;
 * NO_BYTES: there is none. */
struct bytes record_rules_seek(struct arena *arena, const struct record_rules *rules,
                               const struct rules_caller *caller, struct bytes key);

#endif
