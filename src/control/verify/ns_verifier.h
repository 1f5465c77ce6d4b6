/* ns_verifier: a namespace against itself: documents, volumes, references, and the bytes of every file that
 * an attachment has or had. */
#ifndef STAMPD_CONTROL_VERIFY_NS_VERIFIER_H
#define STAMPD_CONTROL_VERIFY_NS_VERIFIER_H

#include "control/archive/archive_sum.h"
#include "control/verify/findings.h"
#include "control/ns/ns_registry.h"

struct ns_verification {
    struct findings findings;
    struct archive_sum sum;
    int64_t files, bytes;                     /* that attachments have or had */
    int64_t unused;                           /* registered files that no attachment has or had */
    int64_t unregistered, unregistered_bytes; /* files of the store that the database does not know */
};

/* Documents and references as they are in one snapshot; each file is read after it.  False: it was not
 * completed, which has been reported; what differs is in `findings`, whose arena the caller sets. */
MUST_USE bool ns_verifier_run(struct control *control, const struct ns_target *target,
                              struct ns_verification *verification);

#endif
