/* live_accounts: loads the accounts of listeners: before they are admitted, and again with each change.  From
 * the change on nothing is sent to them; a session that has ended ends the connection, and a client that is
 * admitted anew reads everything, since it may see other documents now. */
#ifndef STAMPD_LIVE_ACCESS_LIVE_ACCOUNTS_H
#define STAMPD_LIVE_ACCESS_LIVE_ACCOUNTS_H

#include "live/live_audience.h"
#include "live/live_snapshot.h"

/* The document of an account or of an issuer's keys may have changed; any may have. */
void live_accounts_doubt(struct live_audience *audience, struct bytes class, struct bytes id);
void live_accounts_doubt_all(struct live_audience *audience);
/* They cannot be read: refuses those that are not admitted yet. */
void live_accounts_refuse(struct live_audience *audience, enum fault fault);

/* The query: is one due, its parameters, its result. */
bool live_accounts_are_due(const struct live_audience *audience);
void live_accounts_query(struct live_audience *audience, struct pg_params *params);
void live_accounts_take(struct live_audience *audience, struct live_snapshot *snapshot,
                        const struct pg_result *result, struct arena *arena);

#endif
