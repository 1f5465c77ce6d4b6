/* schema_watch: plans and applies declarations when an administrator asks for it over HTTP.
 *
 * The operation `schema` of z stores what is asked for in the document SchemaRun/CODE: an item Conf
 * {"do","of","state"} (plan or apply; the version of the declaration; asked, running, done or failed) and,
 * from here, an item Lines {"text"}: what the command has printed.  Each is run as a `stampctl schema` of its
 * own, one after the other.  A request that is replaced meanwhile is run to its end and leaves no result; one
 * that was interrupted is run again.  Of several processes one works, the others wait. */
#ifndef STAMPD_CONTROL_SCHEMA_SCHEMA_WATCH_H
#define STAMPD_CONTROL_SCHEMA_SCHEMA_WATCH_H

#include "control/control.h"

/* Works until it is killed; with `is_once`, until nothing is asked for.  False: z could not be worked on,
 * which ends it with `is_once` only. */
MUST_USE bool schema_watch_run(struct control *control, bool is_once);

#endif
