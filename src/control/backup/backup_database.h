/* backup_database: the backups of the database, which pgBackRest takes, keeps, checks and restores.
 *
 * Its configuration (/etc/pgbackrest.conf, or what the environment names by PGBACKREST_CONFIG) says where its
 * repositories are, how long backups are kept, and how they are encrypted.  pgBackRest runs as the system
 * user of PostgreSQL: root becomes that user, any other caller must be it. */
#ifndef STAMPD_CONTROL_BACKUP_BACKUP_DATABASE_H
#define STAMPD_CONTROL_BACKUP_BACKUP_DATABASE_H

#include "control/backup/backup_folder.h"

/* Runs pgBackRest with these words, which end with NULL, for the stanza of the folder, and waits for it.  Its
 * messages go to standard error, and its output to `output`, or with NULL to standard error too.  False: it
 * has failed, which is reported. */
MUST_USE bool backup_database_run(struct control *control, const struct backup_folder *folder,
                                  struct builder *output, const char *const *words);
#define BACKUP_DATABASE_RUN(control, folder, output, ...)                                                    \
    backup_database_run((control), (folder), (output), (const char *const[]){__VA_ARGS__, NULL})

struct backup_base {
    const char *name, *type;       /* of pgBackRest: its label; full, diff or incr */
    int64_t started_s, finished_s; /* since 1970 */
    int64_t bytes;                 /* of the database */
    int64_t missing;               /* files of attachments without a copy; -1: objects were left out */
    const char *first_segment;     /* of PostgreSQL's log that it needs */
};

struct backup_bases {
    struct backup_base *bases; /* the complete ones, oldest first */
    size_t count;
    const char *newest_segment; /* of the archive; "": it is empty */
    const char *archive;        /* its folder, below the repository's archive/STANZA; "": there is none */
};
/* The annotation of a backup, for `missing`. */
#define BACKUP_MISSING "stampd-missing-files"

/* Reads the backups of the stanza; on failure reports why. */
MUST_USE bool backup_database_list(struct control *control, const struct backup_folder *folder,
                                   struct backup_bases *bases_r);
/* "2026-11-23 03:15:00Z" */
const char *backup_database_time(struct control *control, int64_t time_s);

#endif
