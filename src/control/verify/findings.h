/* findings: the differences that a verification reports: the first ones in words, all of them counted. */
#ifndef STAMPD_CONTROL_VERIFY_FINDINGS_H
#define STAMPD_CONTROL_VERIFY_FINDINGS_H

#include "base/arena.h"
#include "base/bytes.h"
#include "blob/blob_store.h"

struct findings {
    struct arena *arena; /* emptied with each finding */
    int64_t count;
};

/* Ids are printed as JSON strings. */
void findings_add_document(struct findings *findings, struct bytes class, struct bytes id, const char *what);
/* Class NO_BYTES: of the whole namespace. */
void findings_add_class(struct findings *findings, struct bytes class, const char *what);
void findings_add_file(struct findings *findings, const struct blob_digest *digest, const char *what);

#endif
