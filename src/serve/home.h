/* home: which workers keep the database sessions of a namespace.
 *
 * With many namespaces each has a home: a few workers, next to each other by the numbers of their sockets, to
 * which nginx prefers to send its requests (control/homes.h).  What comes to another worker while they are
 * busy is served there, too, unless it needs a database session for which that worker has no room: then the
 * answer asks nginx to hand the request to the home (HOME_HANDOVER). */
#ifndef STAMPD_SERVE_HOME_H
#define STAMPD_SERVE_HOME_H

#include "base/base.h"
#include "base/bytes.h"

/* Is worker `position` of `workers` at home there?  `home` is "FIRST/WIDTH" as nginx sends it; everyone is at
 * home in what is empty or malformed. */
bool home_has(struct bytes home, int64_t position, int64_t workers);

/* The head of an answer without body: nginx runs the request again in its location @stampd_home. */
#define HOME_HANDOVER "Status: 200\r\nX-Accel-Redirect: @stampd_home\r\n\r\n"

#endif
