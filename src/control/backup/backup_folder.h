/* backup_folder: the folder of a backup: its settings, its base backups, its log archive.
 *
 *   backup.json       the settings, written by `stampctl backup init`
 *   base/NAME/        a base backup; NAME is the time at which it began, as 20261123T031500Z
 *   base/NAME.json    written last: a base backup without it was interrupted
 *   log/              PostgreSQL's log (write-ahead log), segment by segment, written by pg_receivewal
 *   files/, objects/  the files of attachments, of all base backups together (backup_files.h)
 *   objects.json      until when the copies of files of object stores are whole
 *   lock, files.lock  held while a command changes base/, files/
 *
 * All of it belongs to one system user, as whom PostgreSQL's tools run; no other user can enter. */
#ifndef STAMPD_CONTROL_BACKUP_BACKUP_FOLDER_H
#define STAMPD_CONTROL_BACKUP_BACKUP_FOLDER_H

#include "control/control.h"

struct backup_folder {
    const char *path;      /* absolute */
    const char *user;      /* system user of the tools */
    const char *role;      /* role of PostgreSQL with the right REPLICATION */
    const char *slot;      /* its replication slot, which keeps the log until it is archived */
    const char *tools;     /* folder of PostgreSQL's programs */
    const char *system;    /* identifier of the cluster */
    int64_t timeline;      /* of the cluster; a fail-over or a restore begins another one */
    int64_t segment_bytes; /* size of a file of the log */
};

struct backup_base {
    const char *name;
    int64_t started_ms, finished_ms; /* since 1970, by the clock of the host that ran the command */
    int64_t bytes;
    int64_t missing; /* files of object stores that could not be copied; -1: none of them were copied */
    uint64_t start,
        end; /* positions in the log: replaying from the first to the second makes it consistent */
};

/* Writes the settings and makes the folders below; on failure reports why. */
MUST_USE bool backup_folder_create(struct control *control, const struct backup_folder *folder);
/* Reads the settings of the folder `path`; on failure reports why. */
MUST_USE bool backup_folder_open(struct control *control, const char *path, struct backup_folder *folder_r);
/* Excludes other commands that lock the same, until the end of the program; waits, or reports that one is at
 * work.  On failure reports why. */
#define BACKUP_LOCK_BASE  "lock"
#define BACKUP_LOCK_FILES "files.lock"
MUST_USE bool backup_folder_lock(struct control *control, const struct backup_folder *folder,
                                 const char *name, bool is_waiting);

/* The complete base backups, oldest first; on failure reports why. */
MUST_USE bool backup_folder_list(struct control *control, const struct backup_folder *folder,
                                 struct backup_base **bases_r, size_t *count_r);
/* Makes the base backup one of the list: measures it by its manifest, and writes its NAME.json.  The name,
 * the times and `missing` are set by the caller.  On failure reports why. */
MUST_USE bool backup_folder_add(struct control *control, const struct backup_folder *folder,
                                struct backup_base *base);
/* Notes that each file of attachments that was uploaded before the stamp was copied, or was counted as
 * missing; on failure reports why. */
MUST_USE bool backup_folder_note_objects(struct control *control, const struct backup_folder *folder,
                                         int64_t before);
/* The same stamp; -1: files of object stores were never copied.  On failure reports why. */
MUST_USE bool backup_folder_read_objects(struct control *control, const struct backup_folder *folder,
                                         int64_t *before_r);
/* Were they ever copied? */
bool backup_folder_has_objects(struct control *control, const struct backup_folder *folder);
/* Removes a base backup, complete or not; on failure reports why. */
MUST_USE bool backup_folder_remove(struct control *control, const struct backup_folder *folder,
                                   const char *name);
/* Removes what interrupted runs have left; on failure reports why. */
MUST_USE bool backup_folder_sweep(struct control *control, const struct backup_folder *folder);

/* Has the folder no entries but lost+found?  True too when it does not exist. */
bool backup_folder_is_empty(const char *path);

#endif
