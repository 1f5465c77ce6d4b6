/* backup_log: segments of PostgreSQL's log in a folder: those of the archive, or of a data directory.
 *
 * A segment is a file of segment_bytes, named by its timeline and number in 24 hexadecimal digits; the one
 * that pg_receivewal still writes ends with .partial.  All are of one timeline: the slot of a backup does
 * not survive a fail-over or a restore, after which a new folder is begun. */
#ifndef STAMPD_CONTROL_BACKUP_BACKUP_LOG_H
#define STAMPD_CONTROL_BACKUP_BACKUP_LOG_H

#include "control/backup/backup_folder.h"

struct backup_log {
    const char *path;
    uint64_t *numbers; /* of the complete segments, in order */
    size_t count;
    bool has_partial;
    uint64_t partial; /* number of the segment that is being written */
    int64_t bytes;    /* of all files */
    int64_t newest_s; /* when one of them was written last, seconds since 1970; 0: there is none */
    size_t strangers; /* files of other timelines */
};

/* Lists the folder `path`; on failure reports why. */
MUST_USE bool backup_log_list(struct control *control, const struct backup_folder *folder, const char *path,
                              struct backup_log *log_r);
/* The number of the segment that has this position. */
uint64_t backup_log_segment(const struct backup_folder *folder, uint64_t position);
/* The name of the file. */
const char *backup_log_name(struct control *control, const struct backup_folder *folder, uint64_t number);
/* Is each segment there from number `from` on, up to the newest?  `missing_r`: the first that is not; `from`
 * itself when the log does not reach it. */
MUST_USE bool backup_log_is_whole(const struct backup_log *log, uint64_t from, uint64_t *missing_r);

/* What the log has from a position on. */
struct backup_log_content {
    bool is_sound;     /* each record of the complete segments has its checksum and follows the other */
    int64_t newest_us; /* time of the newest commit, microseconds since 1970; 0: there is none */
};
/* Reads all records from `start` on by pg_waldump, in a folder where the log is whole; the partial segment
 * has its final name there when `is_prepared`, else it is not read.  False: could not run, reported. */
MUST_USE bool backup_log_examine(struct control *control, const struct backup_folder *folder,
                                 const struct backup_log *log, uint64_t start, bool is_prepared,
                                 struct backup_log_content *content_r);

/* Removes the segments before number `from`; on failure reports why. */
MUST_USE bool backup_log_prune(struct control *control, const struct backup_folder *folder,
                               const struct backup_log *log, uint64_t from, size_t *removed_r);

/* "2026-11-23 03:15:00.5Z", with T for the blank, with +01 or +01:30 for Z, as microseconds since 1970.
 * False: it has another form.  A time without zone is refused: it would depend on the host. */
MUST_USE bool backup_log_time(struct bytes text, int64_t *us_r);

#endif
