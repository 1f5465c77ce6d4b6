/* namespaces: a table of databases in the shared segment, found or added by name.  Everywhere, `ns` is the
 * index in this table. */
#ifndef STAMPD_SEGMENT_NAMESPACES_H
#define STAMPD_SEGMENT_NAMESPACES_H

#include "base/bytes.h"
#include "segment/segment.h"

enum {
    NAMESPACES_MOST = 256,
    NAMESPACES_DATABASE_BYTES = 63, /* longest name of a database */
    CELLS_MOST = NAMESPACES_MOST + 1
};

/* -1: the table is full, or the name is not valid for a database (empty, too long, contains a NUL). */
int namespaces_find(struct segment *segment, struct bytes database);
/* Without adding it, which would let the relay connect to a database that nothing uses; -1: it is not in the
 * table. */
int namespaces_look_up(const struct segment *segment, const char *database);
/* NULL: a process died or is still writing the name; the namespace is not in use yet. */
const char *namespaces_database(const struct segment *segment, int ns);
int namespaces_count(const struct segment *segment);
/* The number of the cell of its database (base/settings.h), below CELLS_MOST and always the same; 0: that of
 * the setting `database`. */
int namespaces_cell(const struct segment *segment, int ns);
/* Whether all sessions of former generations are gone from the database. */
bool namespaces_is_clean(const struct segment *segment, int ns);
void namespaces_set_clean(struct segment *segment, int ns);
/* Whether the last use of the database succeeded, and how long ago that was (-1: never).  Set by any
 * process that opens or loses a session there, and by the relay while it listens there. */
void namespaces_set_health(struct segment *segment, int ns, bool is_up);
int64_t namespaces_health(const struct segment *segment, int ns, bool *is_up_r);

/* For board.c. */
size_t namespaces_size(const struct board_sizes *sizes);
void namespaces_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
