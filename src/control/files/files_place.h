/* files_place: `stampctl files place`: where the files of a namespace belong, and where they are; and the
 * object stores that the settings name. */
#ifndef STAMPD_CONTROL_FILES_FILES_PLACE_H
#define STAMPD_CONTROL_FILES_FILES_PLACE_H

#include "blob/blob_store.h"
#include "control/control.h"
#include "blob/object_store.h"
#include "control/documents/progress.h"
#include "control/ns/ns_registry.h"

/* The store `name`; on failure reports why.  The texts are in the arena. */
MUST_USE bool files_place_find(struct control *control, const char *name, struct object_store_place *place_r);

int files_place(struct control *control, int argc, char **argv);

/* --- files walk: the files that the documents of a namespace have, in the order of their digests --- */
struct files_listing {
    struct control *control;
    struct ns_target target;
    struct progress progress;
    int64_t files, bytes;  /* that documents have now, or had until a short time ago */
    int64_t visited, seen; /* files, their bytes */
};

struct files_entry {
    struct blob_digest digest;
    char sha[BLOB_HEX + 1];
    int64_t size;
};

/* On failure reports why. */
MUST_USE bool files_walk_open(struct files_listing *walk, struct control *control, const char *code);
/* Calls `visit` for each file, with a display of the progress; ends when it returns false. */
MUST_USE bool files_walk_run(struct files_listing *walk,
                             bool (*visit)(void *context, const struct files_entry *entry), void *context);
/* Does a document still have the file?  One that is missing may have been removed meanwhile.  On failure
 * reports why. */
MUST_USE bool files_walk_is_used(struct files_listing *walk, const struct files_entry *entry,
                                 bool *is_used_r);

#endif
