/* import_progress: the record of an import in the database of its namespace. */
#ifndef STAMPD_CONTROL_ARCHIVE_IMPORT_PROGRESS_H
#define STAMPD_CONTROL_ARCHIVE_IMPORT_PROGRESS_H

#include "control/archive/archive_reader.h"
#include "control/ns/ns_registry.h"

enum { IMPORT_VERIFIED = -1 };
struct import_progress {
    const char *identity; /* of archive and transformation */
    bool is_merge;
    enum ns_state state;    /* of the namespace before */
    int64_t members;        /* done; IMPORT_VERIFIED: all, and they were verified */
    struct archive_sum sum; /* of the documents imported */
    bool is_prepared;       /* the statement that moves it */
};

/* Each on failure reports why. */
/* Excludes other imports until the end of the session. */
MUST_USE bool import_progress_lock(struct control *control, struct pg *pg);
MUST_USE bool import_progress_read(struct control *control, struct pg *pg, bool *is_there_r,
                                   struct import_progress *progress_r);
/* Locks, and compares the record of an interrupted import with `progress`, which becomes that record if it is
 * of the same import.  NEW: there is none, or it is of another import of the same kind that has stored no
 * document; of that one `progress` gets the state, and import_progress_begin takes its place. */
enum import_beginning { IMPORT_REFUSED, IMPORT_NEW, IMPORT_RESUMED };
MUST_USE enum import_beginning import_progress_take(struct control *control, struct pg *pg, const char *code,
                                                    struct import_progress *progress);
MUST_USE bool import_progress_begin(struct control *control, struct pg *pg,
                                    const struct import_progress *progress);
/* Within the transaction that imports. */
MUST_USE bool import_progress_move(struct pg *pg, struct import_progress *progress);
MUST_USE bool import_progress_end(struct pg *pg);

/* --- a namespace that follows another one (control/move) --- */

/* Records that the namespace is what this archive has. */
MUST_USE bool import_progress_follow(struct control *control, struct pg *pg,
                                     const struct archive_contents *contents);
/* The identity, in hexadecimal, of the archive that the record names so; NULL: it is of an import, or there
 * is none. */
const char *import_progress_followed(const struct import_progress *progress);
/* Records that nothing follows any more, and that it is about to be opened. */
MUST_USE bool import_progress_open(struct pg *pg);
bool import_progress_opens(const struct import_progress *progress);

#endif
