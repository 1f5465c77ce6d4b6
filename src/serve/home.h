/* home: which workers keep the database sessions of a namespace.
 *
 * With many namespaces, each has a home: a few workers with adjacent socket numbers, to which nginx prefers
 * to send its requests (control/nginx/homes.h).  While they are busy, other workers serve its requests too.
 * If such a request needs a database session for which its worker has no room, the answer makes nginx
 * redirect it to the home (HOME_HANDOVER). */
#ifndef STAMPD_SERVE_HOME_H
#define STAMPD_SERVE_HOME_H

#include "base/base.h"
#include "base/bytes.h"

/* Does worker `position` of `workers` belong to `home`, "FIRST/WIDTH" as nginx sends it?  Always true if it
 * is empty or malformed. */
bool home_has(struct bytes home, int64_t position, int64_t workers);

/* Heads of answers without body: nginx repeats the request in its location @stampd_home, or in that of the
 * process that waits for the decoder of images (heritage.h). */
#define HOME_HANDOVER       "Status: 200\r\nX-Accel-Redirect: @stampd_home\r\n\r\n"
#define THUMBNAILS_HANDOVER "Status: 200\r\nX-Accel-Redirect: @stampd_thumbnails\r\n\r\n"

#endif
