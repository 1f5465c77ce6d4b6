/* audit: the record of administration (doc/reference/audit.md): who did what, where, and how it ended, one
 * line of JSON an event in the file of the setting audit_file, or in the log.
 *
 * The file is opened for each event, so that it may be renamed at any time.  At audit_mb it is renamed to end
 * in .1, in place of the former one: both together have a bound.  Any process of the site writes to it; an
 * event is one write. */
#ifndef STAMPD_BASE_LOGGING_AUDIT_H
#define STAMPD_BASE_LOGGING_AUDIT_H

#include "base/bytes.h"
#include "base/settings.h"

/* No text is a secret or the content of something.  NO_BYTES: unknown, or none. */
struct audit_event {
    struct bytes who, operation, ns, target, outcome;
    bool is_of_stranger; /* of a caller who may not administer: a process records audit_refused a minute, and
                            counts the others in the next event as "unrecorded" */
};

/* What cannot be written to the file is written to the log. */
void audit_note(const struct settings *settings, const struct audit_event *event);

#endif
