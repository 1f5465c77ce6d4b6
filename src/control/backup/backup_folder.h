/* backup_folder: the folder with the copies of files of attachments, and the notes about them.
 *
 *   files/, objects/  the copies, for all backups of the database together (backup_files.h)
 *   objects.json      until when the copies of files of object stores are whole
 *   log/              optional: where pg_receivewal writes what is not archived yet (stampd-backup@.service)
 *   lock, files.lock  held while a command works there
 *
 * The folder exists, and belongs to the system user that PostgreSQL and pgBackRest run as; no other user can
 * enter it.  The database itself is backed up by pgBackRest (backup_database.h). */
#ifndef STAMPD_CONTROL_BACKUP_BACKUP_FOLDER_H
#define STAMPD_CONTROL_BACKUP_BACKUP_FOLDER_H

#include "control/control.h"

struct backup_folder {
    const char *path;   /* absolute */
    const char *user;   /* its owner, as whom pgBackRest runs */
    const char *stanza; /* of pgBackRest: the name of the cluster in its configuration */
};

#define BACKUP_STANZA_DEFAULT "main"
#define BACKUP_STANZA_LINE(folder)                                                                           \
    OPTION_TEXT("stanza", "NAME", &(folder)->stanza,                                                         \
                "The stanza of pgBackRest (default: " BACKUP_STANZA_DEFAULT ").")

/* Looks whose the folder is; on failure reports why.  The stanza is set by the caller. */
MUST_USE bool backup_folder_open(struct control *control, const char *path, struct backup_folder *folder_r);
/* Excludes other commands that lock the same, until the descriptor is closed; waits, or reports that one is
 * at work.  -1: failed, reported. */
#define BACKUP_LOCK_BASE  "lock"
#define BACKUP_LOCK_FILES "files.lock"
MUST_USE int backup_folder_lock(struct control *control, const struct backup_folder *folder, const char *name,
                                bool is_waiting);

/* Notes that each file of attachments that was uploaded before the stamp was copied, or was counted as
 * missing; on failure reports why. */
MUST_USE bool backup_folder_note_objects(struct control *control, const struct backup_folder *folder,
                                         int64_t before);
/* The same stamp; -1: files of object stores were never copied.  On failure reports why. */
MUST_USE bool backup_folder_read_objects(struct control *control, const struct backup_folder *folder,
                                         int64_t *before_r);
/* Were they ever copied? */
bool backup_folder_has_objects(struct control *control, const struct backup_folder *folder);

/* Makes a folder of the same owner, unless it exists; on failure reports why. */
MUST_USE bool backup_folder_make(const struct backup_folder *folder, const char *path);
/* Has the folder no entries but lost+found?  True too when it does not exist. */
bool backup_folder_is_empty(const char *path);

#endif
