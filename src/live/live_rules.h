/* live_rules: who may listen in a namespace: its configuration and that of z, which are read from the
 * database of z, and again whenever one of their documents changes there. */
#ifndef STAMPD_LIVE_LIVE_RULES_H
#define STAMPD_LIVE_LIVE_RULES_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/fault.h"
#include "base/settings.h"
#include "model/quotas.h"

struct live_rules;

/* They must be read before they are used. */
struct live_rules *live_rules_create(void) __attribute__((returns_nonnull));
void live_rules_destroy(struct live_rules *rules);

/* They are of another namespace now, or no longer kept up to date. */
void live_rules_reset(struct live_rules *rules);
/* They may have changed: they are to be read again. */
void live_rules_doubt(struct live_rules *rules);
bool live_rules_are_known(const struct live_rules *rules);
bool live_rules_are_wanted(const struct live_rules *rules);
bool live_rules_are_requested(const struct live_rules *rules); /* a query is pending */

/* A query begins; its result will not come; its result: the contents of the configurations of the namespace
 * and of z, NO_BYTES: none. */
void live_rules_begin(struct live_rules *rules);
void live_rules_forget(struct live_rules *rules);
void live_rules_take(struct live_rules *rules, struct bytes content, struct bytes z);

/* Do they show that `code` is a namespace with this database? */
MUST_USE bool live_rules_are_of(const struct live_rules *rules, const struct settings *settings,
                                struct bytes code, struct bytes database);
/* FAULT_NNAMESPACE, OOFF, OGONE, SCLOSED: why a caller may not listen.  A namespace that is read-only may be
 * listened to. */
MUST_USE enum fault live_rules_judge(const struct live_rules *rules, const struct settings *settings,
                                     struct bytes code, struct bytes database, bool is_administrator);
/* What callers may do, with the quotas of z where the namespace has none; NULL: no limit.  Valid until the
 * rules are read again. */
const struct quotas *live_rules_quotas(const struct live_rules *rules);
/* The administrator's text for OOFF and OGONE; NULL: none.  Valid until the rules are read again. */
const char *live_rules_message(const struct live_rules *rules);
/* Are there rules about origins?  If so, finds what to answer to this one; NULL: nothing. */
MUST_USE bool live_rules_find_origin(const struct live_rules *rules, struct arena *arena, struct bytes origin,
                                     const char **found_r);

#endif
