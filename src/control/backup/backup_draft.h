/* backup_draft: a file that appears under its name whole and durable, or not at all.
 *
 * Until then it stands beside it, with .new behind the name.  What an interrupted command leaves of it is
 * replaced, or removed with old copies (backup_files.h). */
#ifndef STAMPD_CONTROL_BACKUP_BACKUP_DRAFT_H
#define STAMPD_CONTROL_BACKUP_BACKUP_DRAFT_H

#include <sys/types.h>

#include "base/base.h"

/* The modes of what is made, and its owner when root runs. */
struct backup_owner {
    uid_t user;
    gid_t group;
    mode_t folder_mode, file_mode;
};

enum { BACKUP_PATH_MOST = 4096 };
#define BACKUP_DRAFT_END ".new"

struct backup_draft;
/* The file `path` in a folder that exists.  Borrows the owner.  NULL: reported. */
struct backup_draft *backup_draft_begin(const char *path, const struct backup_owner *owner);
/* Where its bytes are written; closed by the functions below. */
int backup_draft_fd(const struct backup_draft *draft);
/* It appears as `path`, in the same file system, if it has so many bytes; ends the draft in any case.  Its
 * name is durable when its folder is.  On failure reports why. */
MUST_USE bool backup_draft_finish(struct backup_draft *draft, const char *path, int64_t size);
/* Ends the draft; nothing appears.  NULL: does nothing. */
void backup_draft_abandon(struct backup_draft *draft);

/* Makes a folder, durably, unless it exists; refuses a link of another user.  The path has a folder in it.
 * On failure reports why. */
MUST_USE bool backup_draft_folder(const char *path, const struct backup_owner *owner);
/* Makes the names in a folder durable; on failure reports why. */
MUST_USE bool backup_draft_sync(const char *path);

#endif
