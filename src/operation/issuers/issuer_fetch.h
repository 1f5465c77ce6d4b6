/* issuer_fetch: fetches the keys of an OpenID provider by HTTPS: from its address `jwks`, or from the one
 * that its configuration names (OpenID Connect Discovery 1.0).
 *
 * Bounded: 3 seconds and 64 KiB each, no redirect, https only, public addresses only unless the setting
 * issuer_addresses is any. */
#ifndef STAMPD_OPERATION_ISSUERS_ISSUER_FETCH_H
#define STAMPD_OPERATION_ISSUERS_ISSUER_FETCH_H

#include "base/settings.h"
#include "model/account/issuer.h"
#include "model/account/key_set.h"

/* Blocks the process for at most some 6 seconds.  NULL: fetched; otherwise why not, one sentence that names
 * no address, in the arena. */
MUST_USE const char *issuer_fetch(const struct settings *settings, struct arena *arena,
                                  const struct issuer *issuer, struct key_set *set_r);

#endif
