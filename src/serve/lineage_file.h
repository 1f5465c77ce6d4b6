/* lineage_file: what segment/lineage.h knows, in a file, for the next start: `lineage` in run_directory.  The
 * relay writes it once a second while it changes; the master reads it before it has children. */
#ifndef STAMPD_SERVE_LINEAGE_FILE_H
#define STAMPD_SERVE_LINEAGE_FILE_H

#include "base/settings.h"
#include "segment/segment.h"

/* A segment that knows something already keeps that.  A file that is damaged, or not there, says nothing. */
void lineage_file_read(const struct settings *settings, struct segment *segment);
/* Writes it if it is due, or `is_last`, and has changed. */
void lineage_file_keep(const struct settings *settings, const struct segment *segment, bool is_last);

#endif
