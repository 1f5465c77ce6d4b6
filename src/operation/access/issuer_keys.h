/* issuer_keys: the keys of an OpenID provider, which the namespace keeps in two documents:
 *
 * - Issuer/<id>, item Keys: {"issuer","keys":[…]}, the public keys (model/account/key_set.h); it changes only
 * with them.
 * - Issuer/<id>-state, item State: {"fetched","tried","failures","problem"}, stamps of the last fetch and of
 * the last attempt, the attempts that have failed since, and why the last one did.
 *
 * They are fetched by the task `issuers` (issuers/issuers.c), which the scans of the queue manager create
 * when it is due (tasks/task_issuers.h).  So a commit announces new keys to every worker and host as it does
 * any other document.
 *
 * Keys are fetched again when they are issuer_keys_refresh_s old, and refused when they are
 * issuer_keys_most_s old.  A token with an unknown key wants them earlier, but no more often than once in
 * ISSUER_KEYS_PAUSE_S; strangers cannot cause more by any number of tokens. */
#ifndef STAMPD_OPERATION_ACCESS_ISSUER_KEYS_H
#define STAMPD_OPERATION_ACCESS_ISSUER_KEYS_H

#include "base/settings.h"
#include "document/documents.h"
#include "model/account/issuer.h"
#include "model/account/key_set.h"
#include "segment/segment.h"

enum { ISSUER_KEYS_PAUSE_S = 60 };

/* --- the documents --- */

enum { ISSUER_KEYS_DOCUMENTS = 2 };
/* The ids of both, in this order; in the arena. */
void issuer_keys_name(struct arena *arena, struct bytes issuer,
                      struct document_name names_r[ISSUER_KEYS_DOCUMENTS]);

struct issuer_state {
    int64_t fetched_ms, tried_ms; /* since 1970; 0: never */
    int64_t failures;             /* since the last fetch */
    struct bytes problem;         /* empty: none; a slice, or in the arena */
};
/* The names of its documents, and its newest state. */
MUST_USE enum fault issuer_keys_find_state(struct documents *documents, int ns, struct arena *arena,
                                           const struct issuer *issuer,
                                           struct document_name names_r[ISSUER_KEYS_DOCUMENTS],
                                           struct issuer_state *state_r);
/* The same from the content of State. */
struct issuer_state issuer_keys_parse_state(struct arena *arena, struct bytes content);
struct bytes issuer_keys_write_state(struct arena *arena, const struct issuer_state *state);
struct bytes issuer_keys_write(struct arena *arena, struct bytes issuer, const struct key_set *set);

/* Is a fetch due?  `is_wanted`: a token has an unknown key. */
bool issuer_keys_are_due(const struct settings *settings, const struct issuer_state *state, bool is_wanted,
                         int64_t now_ms);

/* --- keys, ready for use --- */

struct issuer_keys;

/* Those of two snapshots; none, if they have none that can be read. */
struct issuer_keys *issuer_keys_open(const struct document *keys, const struct document *state)
    __attribute__((returns_nonnull));
void issuer_keys_close(struct issuer_keys *keys); /* NULL is allowed */
/* Moves with each change of the keys. */
int64_t issuer_keys_version(const struct issuer_keys *keys);
/* Since 1970, in milliseconds: they are refused from then on. */
int64_t issuer_keys_end_ms(const struct settings *settings, const struct issuer_keys *keys);
/* Has a fetch been tried so recently that none may follow? */
bool issuer_keys_are_recent(const struct issuer_keys *keys, int64_t now_ms);
/* NULL: none, or not exactly one, has this name (NO_BYTES: any) and algorithm; is_unknown_r: a fetch may
 * help.
 */
const struct signature_key *issuer_keys_find(const struct issuer_keys *keys, struct bytes name,
                                             enum signature_algorithm algorithm, bool *is_unknown_r);

/* --- wishes --- */

/* A token has an unknown key: wakes the queue manager, unless it was woken within the pause. */
void issuer_keys_want(const struct settings *settings, struct segment *segment, int ns, struct bytes code,
                      struct bytes issuer);
/* Has one been wanted within the pause? */
bool issuer_keys_are_wanted(struct segment *segment, int ns, struct bytes issuer);

#endif
