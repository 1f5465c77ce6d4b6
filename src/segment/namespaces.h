/* namespaces: a table of databases in the shared segment, found or added by name.  The index in it is `ns`
 * everywhere. */
#ifndef STAMPD_SEGMENT_NAMESPACES_H
#define STAMPD_SEGMENT_NAMESPACES_H

#include "base/bytes.h"
#include "segment/board.h"

enum {
    NAMESPACES_MOST = 256,
    NAMESPACES_DATABASE_BYTES = 63 /* longest name of a database */
};

/* -1: the table is full, or this is no name of a database (empty, too long, with a NUL). */
int namespaces_find(struct segment *segment, struct bytes database);
/* NULL: a process died or is busy writing the name; nobody uses that namespace yet. */
const char *namespaces_database(const struct segment *segment, int ns);
int namespaces_count(const struct segment *segment);
/* Are the sessions of former generations gone from it? */
bool namespaces_is_clean(const struct segment *segment, int ns);
void namespaces_set_clean(struct segment *segment, int ns);
/* What the last use of the database has shown, and how long ago that was (-1: never): written by whoever
 * opens or loses a session, and by the relay as long as it listens there. */
void namespaces_set_health(struct segment *segment, int ns, bool is_up);
int64_t namespaces_health(const struct segment *segment, int ns, bool *is_up_r);

/* For board.c. */
size_t namespaces_size(const struct board_sizes *sizes);
void namespaces_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
