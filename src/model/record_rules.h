/* record_rules: who may read and write which records: the member `records` of a namespace's configuration
 * (model/namespace.h).  Pure.
 *
 *   [{"prefix": "presence.{account}.", "read": "anyone", "write": "account"}, …]
 *
 * A rule is about the keys that begin with `prefix`, where {account} is the caller's account; for a caller
 * without one such a rule says nothing.  `read` and `write` are "anyone", "account" (whoever has signed in)
 * or "role:NAME"; absent: nobody.  What no rule allows is refused, but to the administrator. */
#ifndef STAMPD_MODEL_RECORD_RULES_H
#define STAMPD_MODEL_RECORD_RULES_H

#include "base/arena.h"
#include "base/bytes.h"
#include "edge/json/json.h"
#include "model/rules/rules.h"

enum { RECORD_RULES_MOST = 32, RECORD_RULES_PREFIX_MOST = 128, RECORD_RULES_ROLE_MOST = 64 };

struct record_rules;

#define RECORD_RULES_EXPECTED                                                                                \
    "An array of at most 32 objects is expected: prefix, a text of at most 128 bytes, in which a "           \
    "character like . or / follows {account}; read and write, each anyone, account or role:NAME."

/* In the arena; false: malformed.  `value` may be shallow. */
MUST_USE bool record_rules_read(struct arena *arena, const struct json *value,
                                const struct record_rules **rules_r);
/* May the caller, who is not the administrator, read or write the record of this key?  NULL: no rules. */
bool record_rules_allow(const struct record_rules *rules, const struct rules_caller *caller, struct bytes key,
                        bool is_write);
/* The first key from this one on that some rule for reading could be about, in the arena or the key itself;
 * NO_BYTES: there is none. */
struct bytes record_rules_seek(struct arena *arena, const struct record_rules *rules,
                               const struct rules_caller *caller, struct bytes key);

#endif
