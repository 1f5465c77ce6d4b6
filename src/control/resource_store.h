/* resource_store: the files of a namespace (model/resource_file.h) in the database of z, which the commands
 * read and change there.  Changes are of one transaction; each function that fails reports why. */
#ifndef STAMPD_CONTROL_RESOURCE_STORE_H
#define STAMPD_CONTROL_RESOURCE_STORE_H

#include "control/control.h"
#include "model/resource_file.h"

struct stored_resource {
    struct bytes path;
    struct resource_file file;
    struct bytes content; /* of its item File */
};

/* In the order of their paths. */
MUST_USE bool resource_store_list(struct control *control, struct pg *z, const char *code,
                                  struct stored_resource **files_r, size_t *count_r);
/* The bytes of a file.  It is reported if there is none. */
MUST_USE bool resource_store_get(struct control *control, struct pg *z, const char *code, struct bytes path,
                                 struct bytes *bytes_r);

/* A file to put, or the path of one to remove. */
struct resource_change {
    struct bytes path, bytes;
    struct resource_file file;
    bool is_removal;
};
/* All in one commit, within the limits; changes that change nothing are left out and not counted in
 * `changed_r`. */
MUST_USE bool resource_store_change(struct control *control, struct pg *z, const char *code,
                                    const struct resource_change *changes, size_t count, size_t *changed_r);
/* Removes all files of a namespace that is dropped. */
MUST_USE bool resource_store_drop(struct control *control, struct pg *z, const char *code);

#endif
