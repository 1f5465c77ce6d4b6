/* move_site: what a move does to the database that a namespace leaves, and carries over besides the
 * documents.
 */
#ifndef STAMPD_CONTROL_MOVE_MOVE_SITE_H
#define STAMPD_CONTROL_MOVE_MOVE_SITE_H

#include "control/ns/ns_registry.h"

/* Each on failure reports why. */

/* Can it be moved?  Excludes other moves of it until the end of both sessions. */
MUST_USE bool move_site_check(struct control *from, const struct ns_target *source, struct control *to,
                              const struct ns_target *target);
/* From the return on no server writes to the database, whatever it takes the state of the namespace to be:
 * sessions of servers are ended, and new ones only read. */
MUST_USE bool move_site_freeze(struct control *control, const struct ns_target *source);
MUST_USE bool move_site_thaw(struct control *control, const struct ns_target *source);
/* Ends the sessions of servers that began before now. */
MUST_USE bool move_site_end_sessions(struct control *control, const struct ns_target *source);
/* Tasks and their history, periodic tasks, kept answers, subscriptions, copies that are due, the secret, the
 * floor. */
MUST_USE bool move_site_carry(struct control *from, const struct ns_target *source, struct control *to,
                              const struct ns_target *target);
/* Have both the same documents, by their names, versions and sizes? */
MUST_USE bool move_site_compare(struct control *from, const struct ns_target *source, struct control *to,
                                const struct ns_target *target);

#endif
