/* start_check: whether a server can serve what there is, before it starts. */
#ifndef STAMPD_SERVE_START_CHECK_H
#define STAMPD_SERVE_START_CHECK_H

#include "base/settings.h"

/* Reads the site key; false, with one line in `problem`, when it is malformed or is not that of an encrypted
 * namespace, or when shared memory is on a disk (site_key_check_shared).  A database that cannot be reached
 * is not checked now: its sessions check again. */
MUST_USE bool start_check_keys(const struct settings *settings, char *problem, size_t problem_size);

#endif
