/* live_access: who may listen in a namespace: its configuration, its rules and the configuration of z, which
 * are read from the database of z, and again whenever one of their documents changes there. */
#ifndef STAMPD_LIVE_ACCESS_LIVE_ACCESS_H
#define STAMPD_LIVE_ACCESS_LIVE_ACCESS_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/fault.h"
#include "base/settings.h"
#include "model/quotas.h"
#include "model/record_rules.h"
#include "model/rules/rules.h"

struct live_access;
struct filters;

/* It must be read before it is used. */
struct live_access *live_access_create(void) __attribute__((returns_nonnull));
void live_access_destroy(struct live_access *access);

/* It is that of another namespace now, or no longer kept up to date. */
void live_access_reset(struct live_access *access);
/* It may have changed: it is to be read again. */
void live_access_doubt(struct live_access *access);
bool live_access_is_known(const struct live_access *access);
bool live_access_is_wanted(const struct live_access *access);
bool live_access_is_requested(const struct live_access *access); /* a query is pending */
/* Known, and not in doubt: documents may be judged. */
bool live_access_is_certain(const struct live_access *access);

/* What a query returns; NO_BYTES: the item is absent. */
struct live_access_texts {
    struct bytes code; /* of the namespace */
    struct bytes conf, conf_of_z, rules;
    int64_t mark; /* version of the rules */
};
/* A query begins; its result will not come; its result. */
void live_access_begin(struct live_access *access);
void live_access_forget(struct live_access *access);
void live_access_take(struct live_access *access, const struct live_access_texts *texts);

/* Does it show that `code` is a namespace with this database? */
MUST_USE bool live_access_is_of(const struct live_access *access, const struct settings *settings,
                                struct bytes code, struct bytes database);
/* FAULT_NNAMESPACE, OOFF, OGONE, SCLOSED: why a caller may not listen at all.  A namespace that is read-only
 * may be listened to. */
MUST_USE enum fault live_access_judge(const struct live_access *access, const struct settings *settings,
                                      struct bytes code, struct bytes database, bool is_administrator);
/* Are the events of such a caller judged, each by itself?  Else all are sent. */
bool live_access_is_judged(const struct live_access *access, bool is_administrator);
bool live_access_is_encrypted(const struct live_access *access);
/* The rules by which they are judged; NULL: none.  Valid until it is read again. */
const struct rules *live_access_rules(const struct live_access *access, bool is_administrator);
/* What filters of modules take away beside them; NULL: nothing.  Valid until it is read again. */
const struct filters *live_access_filters(const struct live_access *access, bool is_administrator);
/* The version of their item; 0: there is none. */
int64_t live_access_mark(const struct live_access *access);
/* Moves with each change of the rules. */
uint64_t live_access_turn(const struct live_access *access);
/* The rules for records; NULL: no caller may read any.  Valid until it is read again. */
const struct record_rules *live_access_records(const struct live_access *access);
/* Do several hosts hold the records of the namespace?  Then nothing here learns of their changes. */
bool live_access_is_spread(const struct live_access *access);
/* Moves with each change of the configuration of the namespace. */
uint64_t live_access_configured(const struct live_access *access);
bool live_access_has_accounts(const struct live_access *access);
/* The OpenID providers of the namespace; NULL: none.  Valid until it is read again. */
const struct issuers *live_access_issuers(const struct live_access *access);
/* What callers may do, with the quotas of z where the namespace has none; NULL: no limit.  Valid until it is
 * read again. */
const struct quotas *live_access_quotas(const struct live_access *access);
/* The administrator's text for OOFF and OGONE; NULL: none.  Valid until it is read again. */
const char *live_access_message(const struct live_access *access);
/* What every caller may know of the configuration, as `ping` returns it: JSON of one line.  Valid until it is
 * read again. */
struct bytes live_access_shown(const struct live_access *access);
/* Moves with each change of it; 0: it was never read. */
uint64_t live_access_shown_turn(const struct live_access *access);
/* Is the namespace on, and is nothing else set that callers may know? */
bool live_access_is_plain(const struct live_access *access);
/* Are there rules about origins?  If so, finds what to answer to this one; NULL: nothing. */
MUST_USE bool live_access_find_origin(const struct live_access *access, struct arena *arena,
                                      struct bytes origin, const char **found_r);

#endif
