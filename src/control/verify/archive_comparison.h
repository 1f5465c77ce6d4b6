/* archive_comparison: the documents and files of an archive against those of a namespace. */
#ifndef STAMPD_CONTROL_VERIFY_ARCHIVE_COMPARISON_H
#define STAMPD_CONTROL_VERIFY_ARCHIVE_COMPARISON_H

#include "control/archive/archive_reader.h"
#include "control/verify/findings.h"
#include "control/ns/ns_registry.h"

struct archive_comparison {
    struct findings findings;
    int64_t same, other, missing, more; /* documents: equal, different, not there, not in the archive */
    int64_t files, missing_files;       /* of the archive; not in the store with their size */
};

/* The archive has been verified.  Of one that has some documents only, or changes only, these are compared,
 * and `more` stays 0; deletions that the namespace has purged are not missing.  False: it was not completed,
 * which has been reported. */
MUST_USE bool archive_comparison_run(struct control *control, const struct ns_target *target,
                                     const char *path, const struct archive_contents *contents,
                                     struct archive_comparison *comparison);

#endif
