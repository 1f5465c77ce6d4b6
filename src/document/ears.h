/* ears: processes that want to know at once which documents are committed (serve/live), and how workers tell
 * them: through a pipe with a name, for each ear one, into which a worker never waits to write.  What does
 * not fit is missed, and counted in the shared segment; who missed something asks the database.
 *
 * A namespace that nobody listens to costs a commit one look at a word of the segment. */
#ifndef STAMPD_DOCUMENT_EARS_H
#define STAMPD_DOCUMENT_EARS_H

#include "document/ear_sessions.h"
#include "document/stamps.h"

enum { EARS_MOST = 16, EARS_PATH_BYTES = 256 };

struct ear_place {
    _Alignas(64) _Atomic uint32_t owner;       /* process; 0: free */
    _Atomic uint32_t turn;                     /* odd: open; moves whenever that changes */
    _Atomic uint64_t listeners, told, refused; /* for metrics: open connections, events, for want of room */
    _Atomic uint32_t missed[STAMPS_NAMESPACES];
    char path[EARS_PATH_BYTES];   /* of the pipe; stands still while `turn` does */
    struct ear_sessions sessions; /* that listen to it */
};

/* Lies in the segment; zero is a valid beginning. */
struct ears_board {
    _Atomic uint32_t wanted[STAMPS_NAMESPACES]; /* a bit for each ear */
    struct ear_place places[EARS_MOST];
};

/* --- who asks --- */
/* Does the session (document/definition.h) listen to live events of the namespace now?  A connection that is
 * dead counts until that is noticed. */
bool ears_session_listens(const struct stamps *stamps, int space, struct bytes session);

/* --- who tells --- */
struct mouth; /* a process's open pipes */
struct mouth *mouth_create(struct stamps *stamps) __attribute__((returns_nonnull));
void mouth_destroy(struct mouth *mouth); /* NULL is allowed */

static inline bool ears_are_wanted(const struct stamps *stamps, int space)
{
    return atomic_load(&stamps->ears->wanted[space]) != 0;
}

struct ear_change {
    struct bytes class, id;
};
/* These documents were committed at `version`.  Between the commit and stamps_end, so that who finds no
 * commit in flight has been told of all. */
void mouth_tell(struct mouth *mouth, int space, int64_t version, const struct ear_change *changes,
                size_t count);
/* Something may have been committed and nobody can say what.  Before stamps_end, too. */
void mouth_miss(struct mouth *mouth, int space);

/* --- who listens --- */
struct ear;

/* Takes a place that is free or whose process is gone, and makes the pipe in `folder`.  On failure NULL with
 * one line in `problem`. */
struct ear *ear_open(struct stamps *stamps, const char *folder, char *problem, size_t problem_size);
void ear_close(struct ear *ear); /* NULL is allowed */
int ear_descriptor(const struct ear *ear);
struct ear_place *ear_place(const struct ear *ear);
/* From the return on, whatever is committed in the namespace is told, or counted as missed. */
void ear_want(struct ear *ear, int space, bool is_wanted);
uint32_t ear_missed(const struct ear *ear, int space);

/* A connection of the session more, from now on; its key to take it away with, 0: too many. */
MUST_USE uint64_t ear_session_add(struct ear *ear, int space, struct bytes session);
void ear_session_remove(struct ear *ear, uint64_t key);
/* The process is gone: nobody listens to it any more. */
void ears_bury(struct stamps *stamps, uint32_t process);

struct ear_news {
    int space;
    int64_t version;
    struct bytes class, id; /* class without data: only that something was missed; until the next call */
};
/* The next that has come; false: nothing. */
bool ear_next(struct ear *ear, struct ear_news *news_r);

#endif
