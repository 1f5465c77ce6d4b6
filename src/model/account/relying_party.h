/* relying_party: for which pages passkeys of a namespace are: {"rp","name","origins","strict"}, the member
 * `passkeys` of the configuration's accounts (model/namespace.h).
 *
 * | member | value | absent |
 * | --- | --- | --- |
 * | rp | id of the relying party: a domain in lower case | refused |
 * | name | text for people, at most 100 bytes | the id |
 * | origins | array of origins within the id's domain | the namespace's origins that are, and https://<rp> |
 * | strict | true: a passkey whose flag "backup eligible" has changed is refused | false |
 *
 * An origin is within the domain when it is https://HOST or https://HOST:PORT and HOST is the id, or ends
 * with a dot and the id; and http:// for localhost.  Browsers bind a passkey to the id, and let it be used by
 * these pages alone; stampd checks both again.  Pure: no I/O. */
#ifndef STAMPD_MODEL_ACCOUNT_RELYING_PARTY_H
#define STAMPD_MODEL_ACCOUNT_RELYING_PARTY_H

#include "base/arena.h"
#include "edge/json/json.h"

enum { RELYING_PARTY_ORIGINS_MOST = 16 };

struct relying_party {
    const char *id;
    struct bytes name;
    const struct json *origins; /* an array of texts; NULL: see above */
    const struct json *listed;  /* the namespace's origins; NULL: none */
    bool is_strict;
};

/* NULL: the value is malformed.  `listed` is set by the caller. */
struct relying_party *relying_party_read(struct arena *arena, const struct json *value);
/* May pages of this origin use the passkeys? */
bool relying_party_admits(const struct relying_party *party, struct bytes origin);

#endif
