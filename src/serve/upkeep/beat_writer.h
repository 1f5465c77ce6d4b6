/* beat_writer: the process that commits the rows by which a standby is proven young (segment/beats.h), once a
 * second in each database whose standby is read. */
#ifndef STAMPD_SERVE_UPKEEP_BEAT_WRITER_H
#define STAMPD_SERVE_UPKEEP_BEAT_WRITER_H

#include "base/settings.h"
#include "segment/segment.h"

/* Runs until it is stopped. */
void beat_writer_run(const struct settings *settings, struct segment *segment);

#endif
