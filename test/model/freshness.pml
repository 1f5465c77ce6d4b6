/* freshness: processes that read and write two documents of one database through their own caches, while they are
 * killed and lose their connections.  Nothing is bounded: any number of commits, kills and losses.  The steps bear the
 * names that they have in the code.
 *
 * A stamp is a number that only grows, and its only use is to check whether it is still the slot's.  So the
 * number is left out: a process that holds a stamp has a bit, and moving the stamp takes the bits of all who hold an
 * older one.  In the same way the content of a document is left out: a copy is the newest or it is not.  (stamp.pml
 * has numbers.)
 *
 * What is checked:
 *   a read of one document returns what was the newest at some instant of the read (promises 1 and 2);
 *   a read of two documents returns what was there together at some instant of the read (promise 3);
 *   a process that has no commit in flight has left no mark (promise 4), and nothing ever stands still.
 *
 * Sizes: WORKERS; SLOTS, 1: both documents share a slot; and who does what, sets of processes with one bit each:
 * WRITERS, READERS, PAIR_READERS, KILLED, LOSERS (of connections).  DEATHS bounds the kills.  COMES_TO_REST checks that
 * again and again there be no mark, when nobody is slowed down for ever (one writer, bounded kills).  SHARED_CACHE adds
 * the shared cache.  Each other name that is tested with #ifdef breaks the protocol at one place; `cases` has
 * them all. */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#define ALL ((1 << WORKERS) - 1)
#ifndef WRITERS
#define WRITERS ALL
#endif
#ifndef READERS
#define READERS ALL
#endif
#ifndef PAIR_READERS
#define PAIR_READERS READERS
#endif
#ifndef KILLED
#define KILLED ALL
#endif
#ifndef LOSERS
#define LOSERS WRITERS
#endif
#ifdef DEATHS /* of all processes together; else any number */
byte deaths;
#define may_be_killed(w) (is_in(KILLED, w) && deaths < DEATHS)
#define count_death deaths++
#else
#define may_be_killed(w) is_in(KILLED, w)
#define count_death skip
#endif
#if defined(WAIT_FOR_TRANSACTION) || defined(TERMINATE_AND_GO_ON)
#define TRANSACTIONS_TAKE_TIME /* others act between the beginning and the end of a transaction */
#endif
#if defined(COUNT_NOTED_FIRST) || defined(COUNT_ADDED_FIRST)
#define COUNTS /* a count of writers in place of the mark bits; writers write document 0 only */
#endif

#define bit(n) (1 << (n))
#define is_in(set, n) (((set) >> (n)) & 1)
#define add(set, n) set = set | bit(n)
#define remove(set, n) set = set & ~bit(n)
#define put(set, n, yes) set = (set & ~bit(n)) | ((yes) << (n))
#define slot_of(document) ((document) % SLOTS)
#define other(document) (1 - (document))
#ifdef SHARED_CACHE /* one more holder of copies, of index WORKERS */
#define SHARED_CACHE_BIT WORKERS
#endif
#define caches(w) is_in(READERS | PAIR_READERS, w)

/* --- the segment --- */
byte mark[SLOTS];  /* bit w: the mark of process w */
byte ns;           /* bit w: the entry of w says that a commit may be in flight */
byte stamp[SLOTS]; /* bit w: the stamp that w has in hand is still the slot's */
#ifdef COUNTS
short count[SLOTS];
byte noted[SLOTS]; /* bit w: w noted that it counts there */
#define is_marked(slot) (count[slot] != 0)
#else
#define is_marked(slot) (mark[slot] != 0)
#endif

/* --- the caches --- */
byte tagged[2];  /* bit w: w has a copy, and its tag is the stamp of its slot */
byte newest[2];  /* bit w: the copy of w is what the database holds */
byte in_hand[2]; /* bit w: what w has just written, or sees in its snapshot, is what the database holds */

/* --- the database: the session of each process --- */
mtype = {NOTHING, COMMITTED, REFUSED};
byte open;            /* bit w: w has a session */
byte sent[WORKERS];   /* documents of the COMMIT that was sent and has not been run */
mtype answer[WORKERS];
byte former[WORKERS]; /* documents of a COMMIT in the hands of a former session of w */
#ifdef TRANSACTIONS_TAKE_TIME
byte running; /* bit w: the transaction of w's former session runs its COMMIT */
#endif

byte killed; /* bit w: w was killed and is not yet started again */

/* --- what the checks must know of the operation that w is in --- */
byte reading;       /* bit w: w is in one */
byte was_newest[2]; /* bit w: the copy of w was the newest at some instant of it */
byte met[2];        /* bit w: what the database holds was there together with the copy of the other document */
byte together;      /* bit w: the two copies were there together */

#ifdef SHARED_CACHE
#ifdef SHARED_CACHE_OF_ANY_STAMP
byte in_shared_cache; /* documents of which there is a copy */
#endif
byte alike[2];               /* bit w: the copy in the shared cache bears the stamp that w has in hand */
byte since[2 * WORKERS + 2]; /* 2 * holder + document, bit w: the holder's copy was newest since w's operation began */
byte since_hand[2 * WORKERS];
/* Copies go from hand to hand, so for a read of both the model must know of each pair of them, of whoever, whether it was
 * there together: holders are the processes, the shared cache, and what each process has just written. */
#define HOLDERS (2 * WORKERS + 1)
#define hand_of(w) (WORKERS + 1 + (w))
byte both[HOLDERS * HOLDERS]; /* HOLDERS * holder of document 0 + holder of 1, bit w: they were, since w's operation began */
#define is_newest(document, holder) (holder <= WORKERS -> is_in(newest[document], holder) : is_in(in_hand[document], holder - WORKERS - 1))
#define pair_of(document, own, holder) both[(document == 0 -> HOLDERS * (own) + holder : HOLDERS * holder + (own))]

/* The copy of `own` is what the database holds. */
inline meet_all(document, own)
{
    for (holder : 0 .. HOLDERS - 1) {
        pair_of(document, own, holder) = (is_newest(other(document), holder) -> reading : 0)
    }
    holder = 0
}

/* `own` gets the copy of `giver`. */
inline hand_on(document, own, giver)
{
    for (holder : 0 .. HOLDERS - 1) {
        pair_of(document, own, holder) = pair_of(document, giver, holder)
    }
    holder = 0
}
#else
#define meet_all(document, own) skip
#define hand_on(document, own, giver) skip
#endif

/* The state of copies that will be loaded again is left out. */
inline forget_the_untagged()
{
#ifdef SHARED_CACHE
    newest[0] = newest[0] & (tagged[0] | reading | bit(SHARED_CACHE_BIT));
    newest[1] = newest[1] & (tagged[1] | reading | bit(SHARED_CACHE_BIT))
#else
    newest[0] = newest[0] & (tagged[0] | reading);
    newest[1] = newest[1] & (tagged[1] | reading)
#endif
}

/* The stamp of a slot moves: whoever holds it as it was holds an old one now. */
inline move(slot)
{
    stamp[slot] = 0;
    tagged[slot] = 0;
#if SLOTS == 1
    tagged[1] = 0;
#endif
    forget_the_untagged()
}

#ifdef SHARED_CACHE
#define remember_hand(document) since_hand[2 * w + document] = reading
#else
#define remember_hand(document) skip
#endif

/* A commit takes place. */
inline change(w, which)
{
    if
    :: is_in(which, 0) -> newest[0] = 0; in_hand[0] = bit(w); remember_hand(0)
    :: else
    fi;
    if
    :: is_in(which, 1) -> newest[1] = 0; in_hand[1] = bit(w); remember_hand(1)
    :: else
    fi;
#ifdef SHARED_CACHE
    if
    :: is_in(which, 0) -> meet_all(0, hand_of(w))
    :: else
    fi;
    if
    :: is_in(which, 1) -> meet_all(1, hand_of(w))
    :: else
    fi
#else
    if
    :: is_in(which, 0) -> met[0] = newest[1] & reading
    :: else
    fi;
    if
    :: is_in(which, 1) -> met[1] = newest[0] & reading
    :: else
    fi
#endif
}

/* --- reading --- */

inline begin_operation()
{
    d_step {
        add(reading, w);
        put(was_newest[0], w, is_in(newest[0], w));
        put(was_newest[1], w, is_in(newest[1], w));
#ifndef SHARED_CACHE
        put(met[0], w, is_in(newest[1], w));
        put(met[1], w, is_in(newest[0], w));
        put(together, w, is_in(newest[0] & newest[1], w));
#else
        if
        :: is_in(PAIR_READERS, w) ->
            for (holder : 0 .. HOLDERS * HOLDERS - 1) {
                put(both[holder], w, is_newest(0, (holder / HOLDERS)) & is_newest(1, (holder % HOLDERS)))
            }
        :: else
        fi;
        for (holder : 0 .. WORKERS) {
            put(since[2 * holder], w, is_in(newest[0], holder));
            put(since[2 * holder + 1], w, is_in(newest[1], holder))
        }
        for (holder : 0 .. WORKERS - 1) {
            put(since_hand[2 * holder], w, is_in(in_hand[0], holder));
            put(since_hand[2 * holder + 1], w, is_in(in_hand[1], holder))
        }
        holder = 0
#endif
    }
}

inline end_operation()
{
    remove(reading, w);
    remove(was_newest[0], w);
    remove(was_newest[1], w);
    remove(met[0], w);
    remove(met[1], w);
    remove(together, w);
    remove(stamp[0], w);
    remove(stamp[SLOTS - 1], w);
#ifdef SHARED_CACHE
    remove(alike[0], w);
    remove(alike[1], w);
    for (holder : 0 .. 2 * WORKERS + 1) {
        remove(since[holder], w)
    }
    for (holder : 0 .. 2 * WORKERS - 1) {
        remove(since_hand[holder], w)
    }
    for (holder : 0 .. HOLDERS * HOLDERS - 1) {
        remove(both[holder], w)
    }
    holder = 0;
#endif
    forget_the_untagged();
    busy = false;
    equal = false
}

#define look_at_marks(document) busy = is_marked(slot_of(document))
/* The stamp is taken in hand and compared with the tag of the copy. */
#ifdef SHARED_CACHE
#define look_at_stamp(document) d_step { add(stamp[slot_of(document)], w); equal = is_in(tagged[document], w); \
        put(alike[document], w, is_in(tagged[document], SHARED_CACHE_BIT)) }
#else
#define look_at_stamp(document) d_step { add(stamp[slot_of(document)], w); equal = is_in(tagged[document], w) }
#endif

/* The marks FIRST, then the stamp. */
inline slots_see(document)
{
#ifdef STAMP_FIRST
    look_at_stamp(document);
    look_at_marks(document)
#else
    look_at_marks(document);
    look_at_stamp(document)
#endif
}

/* copy.tag := the stamp in hand, seen before the query; also when busy. */
inline tag(document)
{
    put(tagged[document], w, is_in(stamp[slot_of(document)], w));
    busy = false;
    equal = false
}

/* One statement, one snapshot. */
inline store_load(document)
{
#ifdef OLD_SNAPSHOT
    put(newest[document], w, is_in(in_hand[document], w));
    put(was_newest[document], w, is_in(in_hand[document], w));
#else
    add(newest[document], w);
    add(was_newest[document], w);
#endif
#ifdef SHARED_CACHE
    meet_all(document, w);
    was_busy = busy;
#else
    put(together, w, is_in(met[document], w));
    add(met[other(document)], w);
#endif
#ifdef TAG_AFTER_LOAD
    remove(tagged[document], w)
#else
    tag(document)
#endif
}

#ifdef SHARED_CACHE
/* The copy of w, under the stamp that it has in hand; what lies there is kept when it is as good. */
inline shared_cache_put(document)
{
    if
    :: !is_in(stamp[slot_of(document)], w) && is_in(tagged[document], SHARED_CACHE_BIT)
    :: is_in(newest[document], SHARED_CACHE_BIT) && !is_in(newest[document], w)
    :: else ->
       put(newest[document], SHARED_CACHE_BIT, is_in(newest[document], w));
       put(tagged[document], SHARED_CACHE_BIT, is_in(stamp[slot_of(document)], w));
       alike[document] = (is_in(stamp[slot_of(document)], w) -> stamp[slot_of(document)] & reading : 0);
#ifdef SHARED_CACHE_OF_ANY_STAMP
       add(in_shared_cache, document);
#endif
       hand_on(document, SHARED_CACHE_BIT, w);
       since[2 * SHARED_CACHE_BIT + document] = since[2 * w + document]
    fi
}

/* What bears the stamp seen is as good as an own copy under it. */
inline shared_cache_take(document)
{
    put(newest[document], w, is_in(newest[document], SHARED_CACHE_BIT));
    since[2 * w + document] = since[2 * SHARED_CACHE_BIT + document];
    hand_on(document, w, SHARED_CACHE_BIT);
    put(was_newest[document], w, is_in(since[2 * SHARED_CACHE_BIT + document], w));
    put(tagged[document], w, is_in(stamp[slot_of(document)], w));
    equal = false
}

#ifdef SHARED_CACHE_WHEN_MARKED
#define may_take(document) (!equal && is_in(alike[document], w))
#elif defined(SHARED_CACHE_OF_ANY_STAMP)
#define may_take(document) (!busy && !equal && is_in(in_shared_cache, document))
#else
#define may_take(document) (!busy && !equal && is_in(alike[document], w))
#endif
#endif

/* No mark, and the tag is the stamp: the copy is the newest, no call to the database. */
inline find_newest(document)
{
#ifdef OLD_SNAPSHOT
    add(in_hand[document], w); /* a transaction at REPEATABLE READ begins */
#endif
    slots_see(document);
    if
    :: d_step { !busy && equal -> equal = false }
#ifdef SHARED_CACHE
    :: d_step { may_take(document) -> shared_cache_take(document); busy = false }
    :: d_step { (busy || !equal) && !may_take(document) -> store_load(document); since[2 * w + document] = reading };
       if
       :: d_step { !was_busy -> shared_cache_put(document) }
       :: else
       fi;
       was_busy = false
#else
    :: d_step { else -> store_load(document) }
#endif
#ifdef TAG_AFTER_LOAD
       slots_see(document);
       d_step { tag(document) }
#endif
    fi
}

inline read_one(document)
{
    begin_operation();
    find_newest(document);
    d_step {
        assert(is_in(was_newest[document], w)); /* promises 1 and 2 */
        end_operation()
    }
}

#ifdef STAMPS_ALONE
#define is_valid (equal)
#else
#define is_valid (!busy && equal)
#endif

#ifdef SHARED_CACHE
#define were_together (is_in(both[HOLDERS * w + w], w))
#else
#define were_together (is_in(together, w))
#endif

/* All that was read is checked again; what is not valid is not returned. */
inline verify_in_memory()
{
    slots_see(0);
    if
    :: d_step { is_valid -> busy = false; equal = false }
       slots_see(1);
       d_step {
           assert(!is_valid || were_together); /* promise 3 */
           end_operation()
       }
    :: d_step { else -> end_operation() }
    fi
}

inline read_two()
{
    begin_operation();
    find_newest(0);
    find_newest(1);
    verify_in_memory()
}

/* --- sessions --- */

/* session_open: returns when the former session of this process has ended, its commit included. */
inline session_open()
{
#if defined(NO_WAIT)
    add(open, w)
#elif defined(WAIT_FOR_TRANSACTION)
    d_step { !is_in(running, w) -> add(open, w) }
#elif defined(TERMINATE_AND_GO_ON)
    d_step { /* a session heeds the order at once when it waits for a command, else at the command's end */
        if
        :: !is_in(running, w) -> former[w] = 0
        :: else
        fi;
        add(open, w)
    }
#else
    d_step { former[w] == 0 -> add(open, w) }
#endif
}

/* --- writing --- */

#define in_slot(slot, deed) d_step { if :: is_in(slots, slot) -> deed :: else fi }

inline slots_begin() { add(ns, w) }

/* The marks in all slots; then their stamps are noted. */
inline slots_mark()
{
#if defined(NO_MARKS)
    skip;
#elif defined(COUNT_NOTED_FIRST)
    add(noted[0], w);
    count[0]++;
#elif defined(COUNT_ADDED_FIRST)
    count[0]++;
    add(noted[0], w);
#else
    in_slot(0, add(mark[0], w));
#if SLOTS == 2
    in_slot(1, add(mark[1], w));
#endif
#endif
    in_slot(0, add(stamp[0], w));
#if SLOTS == 2
    in_slot(1, add(stamp[1], w))
#endif
}

/* One addition, which says what the stamp was.  As noted: the stamp in hand is the moved one from here on. */
inline publish_slot(slot)
{
#ifdef TAG_WITH_OWN_MOVE
    equal = true;
#else
    equal = is_in(stamp[slot], w);
#endif
    move(slot);
    put(stamp[slot], w, equal);
    equal = false
}

inline slots_publish()
{
#if SLOTS == 2
    d_step { if :: is_in(slots, 0) -> publish_slot(0) :: else fi };
    d_step { if :: is_in(slots, 1) -> publish_slot(1) :: else fi }
#else
    d_step { publish_slot(0) }
#endif
}

inline slots_unmark()
{
#ifdef COUNTS
    count[0]--;
    remove(noted[0], w)
#elif SLOTS == 2
    in_slot(0, remove(mark[0], w));
    in_slot(1, remove(mark[1], w))
#else
    remove(mark[0], w)
#endif
}

/* Validation and COMMIT leave; the answer is read by who called. */
inline store_commit() { sent[w] = documents }

/* The documents as written join the cache, with a tag only when no other commit fell into their slot meanwhile. */
inline keep_written()
{
    d_step {
        if
        :: is_in(documents, 0) && caches(w) ->
            put(newest[0], w, is_in(in_hand[0], w));
            put(tagged[0], w, is_in(stamp[0], w))
        :: else
        fi;
        if
        :: is_in(documents, 1) && caches(w) ->
            put(newest[1], w, is_in(in_hand[1], w));
            put(tagged[1], w, is_in(stamp[SLOTS - 1], w))
        :: else
        fi;
        forget_the_untagged()
    }
#ifdef SHARED_CACHE
    d_step {
        if
        :: is_in(documents, 0) && is_in(stamp[0], w) ->
           since[2 * w] = since_hand[2 * w];
           hand_on(0, w, hand_of(w));
           put(newest[0], w, is_in(in_hand[0], w));
           shared_cache_put(0)
        :: else
        fi;
        if
        :: is_in(documents, 1) && is_in(stamp[SLOTS - 1], w) ->
           since[2 * w + 1] = since_hand[2 * w + 1];
           hand_on(1, w, hand_of(w));
           put(newest[1], w, is_in(in_hand[1], w));
           shared_cache_put(1)
        :: else
        fi;
        forget_the_untagged()
    }
#endif
}

/* The copies are dropped. */
inline distrust_moved()
{
    if
    :: is_in(documents, 0) -> remove(tagged[0], w)
    :: else
    fi;
    if
    :: is_in(documents, 1) -> remove(tagged[1], w)
    :: else
    fi;
    forget_the_untagged()
}

/* The old session must be gone before anybody may believe in these slots again. */
inline settle_unknown()
{
#ifndef UNKNOWN_AT_ONCE
    session_open();
#endif
    slots_publish(); /* as if committed */
    slots_unmark()
}

inline slots_end()
{
    d_step {
        remove(ns, w);
        remove(stamp[0], w);
        remove(stamp[SLOTS - 1], w);
        remove(in_hand[0], w);
        remove(in_hand[1], w);
        documents = 0;
        slots = 0
    }
}

inline commit(which)
{
    if
    :: is_in(open, w)
    :: else -> session_open() /* not after the marks */
    fi;
    d_step {
        documents = which;
#if SLOTS == 2
        slots = which
#else
        slots = 1
#endif
    };
    slots_begin();
    slots_mark();
    store_commit();
    if
    :: d_step { answer[w] == COMMITTED -> answer[w] = NOTHING };
#ifdef UNMARK_FIRST
       slots_unmark();
       slots_publish();
       keep_written()
#else
       slots_publish();
       keep_written();
       slots_unmark()
#endif
    :: d_step { answer[w] == REFUSED -> answer[w] = NOTHING; distrust_moved() };
       slots_unmark()
    :: d_step { !is_in(open, w) -> distrust_moved() };
       settle_unknown()
    fi;
    slots_end()
}

/* --- death --- */

inline sweep_slot(slot)
{
#ifdef COUNTS
    if
    :: is_in(noted[slot], w) -> count[slot]--; remove(noted[slot], w)
    :: else
    fi
#else
    if
    :: is_in(mark[slot], w) ->
#ifndef SWEEP_WITHOUT_MOVE
       d_step { move(slot) };
#endif
       remove(mark[slot], w)
    :: else
    fi
#endif
}

inline slots_sweep()
{
    sweep_slot(0);
#if SLOTS == 2
    sweep_slot(1);
#endif
    remove(ns, w)
}

/* The recovery process: it may be killed at any step and started again. */
inline session_recover()
{
    if
    :: is_in(ns, w) -> session_open(); slots_sweep()
    :: else
    fi
}

/* One index: a worker, and after each death its recovery process, which then serves as a worker. */
proctype process(byte w)
{
    byte documents, slots;
    bool busy, equal;
#ifdef SHARED_CACHE
    bool was_busy;
    byte holder;
#endif
begin:
    {
        session_recover();
        do
        :: is_in(READERS, w) -> read_one(0)
        :: is_in(READERS, w) -> read_one(1)
        :: is_in(PAIR_READERS, w) -> read_two()
        :: is_in(WRITERS, w) -> commit(1)
#ifndef COUNTS
        :: is_in(WRITERS, w) -> commit(2)
        :: is_in(WRITERS, w) -> commit(3)
#endif
        od
    } unless {
        d_step {
            is_in(killed, w) -> remove(killed, w);
            documents = 3; /* all that it had in memory is gone */
            distrust_moved();
            remove(in_hand[0], w);
            remove(in_hand[1], w);
            end_operation();
            documents = 0;
            slots = 0
        }
    };
#ifndef NEVER_RESTARTED
    goto begin
#endif
}

/* The session of w is cut off: what it was sent it may still find in its socket. */
inline cut_off(w)
{
    former[w] = sent[w];
    sent[w] = 0;
    answer[w] = NOTHING;
    remove(open, w)
}

/* What befalls a process: the answers of its session, the loss of its connection, its end; and the end of its former
 * session, which may still have committed. */
proctype fate(byte w)
{
#ifdef SHARED_CACHE
    byte holder;
#endif
    do
    :: d_step { sent[w] != 0 -> change(w, sent[w]); sent[w] = 0; answer[w] = COMMITTED }
    :: d_step { sent[w] != 0 -> sent[w] = 0; answer[w] = REFUSED }
    :: d_step { is_in(LOSERS, w) && former[w] == 0 && (sent[w] != 0 || answer[w] != NOTHING) -> cut_off(w) }
    :: d_step { may_be_killed(w) && former[w] == 0 && !is_in(killed, w) -> cut_off(w); add(killed, w); count_death }
#ifdef TRANSACTIONS_TAKE_TIME
    :: d_step { former[w] != 0 && !is_in(running, w) -> add(running, w) }
    :: d_step { is_in(running, w) -> change(w, former[w]); former[w] = 0; remove(running, w) }
    :: d_step { former[w] != 0 && !is_in(running, w) -> former[w] = 0 }
#else
    :: d_step { former[w] != 0 -> change(w, former[w]); former[w] = 0 }
    :: d_step { former[w] != 0 -> former[w] = 0 }
#endif
    od
}

/* Promise 4. */
#ifdef COUNTS
#define a_mark_stays (ns == 0 && count[0] != 0)
#else
#define a_mark_stays (((mark[0] | mark[SLOTS - 1]) & ~ns) != 0)
#endif

#ifndef ONLY_READS_ARE_CHECKED
active proctype rest()
{
    d_step { a_mark_stays -> assert(!a_mark_stays) }
}
#endif

#ifdef COMES_TO_REST
ltl comes_to_rest { [] <> ((mark[0] | mark[SLOTS - 1]) == 0) }
#endif

init
{
    byte i;
    atomic {
        do
        :: i < WORKERS ->
            answer[i] = NOTHING;
            run process(i);
            run fate(i);
            i++
        :: else -> break
        od
    }
}
