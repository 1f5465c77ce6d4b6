/* restart: the master was killed, and an instance starts.  A worker of the former instance outlives its master a
 * moment; its session outlives the worker.  The new instance has a segment of its own, so nobody in it sees marks of
 * the former.
 *
 * What is checked: a read is never older than a commit acknowledged before it began (promise 1), nor than what another
 * read has returned before (promise 2). */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef COMMITS
#define COMMITS 2
#endif
#define greatest(a, b) ((a) > (b) -> (a) : (b))

byte version = 1;      /* of the document in the database */
byte acknowledged = 1; /* the newest that the former instance has reported to a client */
byte returned = 1;     /* the newest that a read of the new instance has returned */

/* --- the former instance --- */
bool former_lives = true;    /* its worker, which holds the lock on the segment's file */
bool former_session = false; /* with the advisory lock of the former generation */
bool is_terminated;          /* its session was ordered to end */
bool sent;                   /* a COMMIT that its session has not run */
byte answer;                 /* the version that its session says it has committed */

active proctype former_worker()
{
    byte commits;
    do
    :: former_lives && !former_session -> atomic { former_lives && !former_session -> former_session = true }
    :: atomic { former_lives && former_session && commits < COMMITS && !sent && answer == 0 -> commits++; sent = true }
    :: atomic { former_lives && answer != 0 -> acknowledged = greatest(acknowledged, answer); answer = 0 }
    :: d_step { former_lives -> former_lives = false } /* the signal of its master's death has come */
    :: !former_lives -> break
    od
}

active proctype former_backend()
{
end:
    do
    :: d_step { sent -> version++; sent = false; answer = version }
    :: d_step { former_session && (is_terminated || !former_lives) && !sent ->
           former_session = false; is_terminated = false }
    :: d_step { is_terminated && sent -> sent = false; former_session = false; is_terminated = false }
    od
}

/* --- the new instance --- */
bool is_made; /* its segment */
bool clean;   /* no session of a former generation is there */

active proctype instance_start()
{
#ifndef SEGMENT_AT_ONCE
    !former_lives; /* the lock on the segment's file is obtained */
#endif
    is_made = true
}

/* The first session of a generation ends all others and waits until there is none. */
inline session_open()
{
#ifdef NO_CLEANING
    skip
#else
    if
    :: clean
    :: else ->
       d_step { is_terminated = former_session };
       !former_session;
       clean = true
    fi
#endif
}

inline store_load() { copy = version }

/* No stamp of the new segment moves: a copy once loaded is proven for ever. */
active [WORKERS] proctype worker()
{
    byte copy, reported, seen; /* the copy held; what was acknowledged, and what was returned, before the read began */
    is_made;
    session_open();
    do
    :: d_step { reported = acknowledged; seen = returned };
       if
       :: copy != 0
       :: else -> store_load()
       fi;
       d_step {
           assert(copy >= reported); /* promise 1 */
           assert(copy >= seen); /* promise 2 */
           returned = greatest(returned, copy);
           reported = 0;
           seen = 0
       }
    od
}
