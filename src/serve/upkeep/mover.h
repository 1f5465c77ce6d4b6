/* mover: moves the files of attachments between the directory and object stores, while the namespaces are
 * served (doc/reference/object-stores.md).
 *
 * One child of the master, if there are object stores.  It alone talks to them: an upload ends when its file
 * is in the directory, and a download is sent by nginx.  So a store that is slow or away delays this process
 * only, for the times that it names.
 *
 * A file is copied under a name that was never used, the copy is read back and compared with the digest, and
 * then noted in the database: from now on either place can serve it.  The directory loses it a time after
 * that; what has the former location can still read it.  The way back is the same.  Each step is complete
 * when it ends or has no effect, and can be repeated: the process may be killed anywhere, and a stop ends it
 * at once. */
#ifndef STAMPD_SERVE_UPKEEP_MOVER_H
#define STAMPD_SERVE_UPKEEP_MOVER_H

#include "base/settings.h"
#include "segment/segment.h"

/* Runs until it is stopped. */
void mover_run(const struct settings *settings, struct segment *segment);

#endif
