/* backup_files: copies of the files of attachments, which blob/blob_store.h keeps under their digests.
 *
 * A file never changes, so that it is copied once, for all base backups.  The time of a copy is that of the
 * last run that saw the file in the store: a copy older than the oldest base backup is needed by none.
 *
 *   files/DATABASE/SHELF/DIGEST           the files of the directory
 *   objects/DATABASE/SHELF/DIGEST         those of object stores (backup_objects.h)
 *   objects/DATABASE/SHELF/DIGEST.HEADER  the same of an encrypted namespace: digits of a hash of the header
 */
#ifndef STAMPD_CONTROL_BACKUP_BACKUP_FILES_H
#define STAMPD_CONTROL_BACKUP_BACKUP_FILES_H

#include <sys/types.h>

#include "control/backup/backup_folder.h"

/* --- backup draft --- */

/* A file that appears under its name whole and durable, or not at all.
 *
 * Until then it stands beside it, with .new behind the name.  What an interrupted command leaves of it is
 * replaced, or removed with old copies (backup_files.h). */

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

struct backup_files {
    int64_t count, bytes; /* copied now */
};

/* Copies the files of the store `from` that the folder lacks, and marks the others as seen.  A store that
 * does not exist has no files.  On failure reports why. */
MUST_USE bool backup_files_save(struct control *control, const struct backup_folder *folder, const char *from,
                                struct backup_files *files_r);
/* Removes copies that no run has seen in the store since `before_s`, seconds since 1970, of files and of
 * objects; on failure reports why. */
MUST_USE bool backup_files_prune(struct control *control, const struct backup_folder *folder,
                                 int64_t before_s, int64_t *removed_r);
/* Copies the files of the folder that the store `to` lacks, with the owner and group of that directory; it
 * must exist when the folder has files.  On failure reports why. */
MUST_USE bool backup_files_restore(struct control *control, const struct backup_folder *folder,
                                   const char *to, struct backup_files *files_r);

struct backup_copy {
    const char *path, *database, *digest;
    int64_t size, seen_s;
    bool is_draft; /* of an interrupted run */
};
/* Calls `visit` for each copy of the folder, until it returns false; on failure reports why. */
MUST_USE bool backup_files_visit(struct control *control, const struct backup_folder *folder,
                                 bool (*visit)(void *context, const struct backup_copy *copy), void *context);

/* Whose the copies are, and whose the files of a directory of attachments are; reports why it cannot be
 * read. */
struct backup_owner backup_files_owner(const struct backup_folder *folder);
MUST_USE bool backup_files_owner_of(const char *directory, struct backup_owner *owner_r);

#endif
