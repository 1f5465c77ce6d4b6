/* public_reads: puts answers that anybody may have into the segment, where nginx finds them
 * (segment/public_answers.h).
 *
 * That is the answer to a GET of a document, or of the operation `get` for one document, that nobody's
 * credentials, rules, filters, quotas or origin have part in, in a namespace whose access is `read` or
 * `open`.  Three documents decide it: the one that is read, and the configurations of the namespace and of z;
 * and the settings, of which it bears a digest. */
#ifndef STAMPD_HTTP_PUBLIC_READS_H
#define STAMPD_HTTP_PUBLIC_READS_H

#include "http/request.h"
#include "operation/worker_context.h"
#include "segment/public_answers.h"

enum { PUBLIC_READS_PROOFS = 3 };

/* What is known of a request before it is decided. */
struct public_read {
    uint64_t form; /* 0: its answer is not for everybody */
    struct public_proof proofs[PUBLIC_READS_PROOFS];
};

/* The digest of the settings, which all answers bear; 0: with these, workers put none into the segment. */
uint64_t public_reads_form(const struct settings *settings);

/* Notes the stamps of the configurations, before they are read. `form` is not 0. */
void public_reads_see(struct public_read *public_read, struct worker_context *worker_context,
                      const struct call *call, uint64_t form);
/* Then that of the document, once the arguments are known and before it is read.  The form is not 0. */
void public_reads_see_document(struct public_read *public_read, struct worker_context *worker_context,
                               const struct call *call);
/* Puts the answer, which was composed, into the segment, if anybody may have it. */
void public_reads_publish(const struct public_read *public_read, struct segment *segment,
                          const struct request *request, struct bytes query, const struct reply *reply);

#endif
