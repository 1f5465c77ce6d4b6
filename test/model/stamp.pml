/* stamp: how a stamp moves, with its numbers.  Two documents share a slot; writers commit to them and nobody dies.
 *
 * What is checked: a read returns a document at least as new as it was when the read began (promise 1).
 *
 * As built, a move is one addition.  GREATEST_LOOP, max(stamp + 1, version) by compare and swap, is as good.
 * LOAD_AND_STORE and GREATEST_ONLY are broken. */

#define WRITERS 2
#ifndef COMMITS
#define COMMITS 3 /* of all writers together */
#endif
#define greatest(a, b) ((a) > (b) -> (a) : (b))

byte mark;
byte stamp = 1;
byte version[2] = 1; /* of the documents in the database */
byte commits;

inline slots_publish()
{
#if defined(LOAD_AND_STORE)
    loaded = stamp;
    stamp = greatest(loaded + 1, next)
#elif defined(GREATEST_ONLY)
    stamp = greatest(stamp, next)
#elif defined(GREATEST_LOOP)
    do
    :: loaded = stamp;
       if
       :: atomic { stamp == loaded -> stamp = greatest(loaded + 1, next) }; break
       :: else
       fi
    od
#else
    stamp++
#endif
}

inline slots_mark() { mark = mark | (1 << w) }
inline slots_unmark() { mark = mark & ~(1 << w) }
inline store_commit()
{
    atomic {
        if
        :: next = version[w] + 1
        :: next = version[w] + 2
        fi;
        version[w] = next
    }
}
inline slots_see()
{
    busy = mark != 0;
    seen = stamp
}
inline store_load() { copy[d] = version[d]; tag[d] = seen }

/* Each writes a document of its own, at versions that have nothing to do with the other's. */
proctype writer(byte w)
{
    byte next, loaded;
    do
    :: d_step { commits < COMMITS -> commits++ };
       slots_mark();
       store_commit();
       slots_publish();
       slots_unmark();
       d_step { next = 0; loaded = 0 }
    od
}

/* The reader's copies: what version, under what tag; 0: none. */
active proctype reader()
{
    byte copy[2], tag[2], floor, seen, d;
    bool busy;
    do
    :: if
       :: d = 0
       :: d = 1
       fi;
       floor = version[d];
       slots_see();
       if
       :: !busy && tag[d] == seen
       :: else -> d_step { store_load() }
       fi;
       assert(copy[d] >= floor);
       d_step { floor = 0; seen = 0; busy = false; d = 0 }
    od
}

init
{
    byte w;
    atomic {
        do
        :: w < WRITERS -> run writer(w); w++
        :: else -> break
        od
    }
}
