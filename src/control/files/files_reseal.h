/* files_reseal: encrypts the files of an encrypted namespace again that are not under its newest data key,
 * one after the other, while the servers serve (blob/blob_reseal.h). */
#ifndef STAMPD_CONTROL_FILES_FILES_RESEAL_H
#define STAMPD_CONTROL_FILES_FILES_RESEAL_H

#include "control/ns/ns_registry.h"
#include "store/data_keys.h"

/* Prints how many.  A damaged file is reported and stays; the others follow.  On failure, also because of
 * such a file, reports why; run again it goes on. */
MUST_USE bool files_reseal_run(struct control *control, const struct ns_target *target,
                               const struct data_keys *keys);

#endif
