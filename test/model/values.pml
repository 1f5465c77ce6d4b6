/* values: one value that is unique in two namespaces, whose databases have no transaction in common; a third database, z, names
 * the one that may have it.  Each namespace has processes that take the value and give it up; all may be killed at any step, and a
 * COMMIT that was sent is run or dropped some time later.
 *
 * What is checked: never do documents of both namespaces have the value.
 *
 * Numbers of reservations are left out as stamps are in freshness.pml: a process that holds one has a bit, and a new number takes the
 * bits of all who hold an older one. */

#ifndef WORKERS
#define WORKERS 3 /* two of the first namespace, one of the second */
#endif
#define bit(n) (1 << (n))
#define is_in(set, n) (((set) >> (n)) & 1)
#define namespace_of(w) ((w) % 2)
#define other(ns) (1 - (ns))
#define NOBODY 2

bool held[2];         /* a document of the namespace has the value, as committed */
byte locked[2];       /* by whose transaction, w + 1; 0: by none */
byte owner = NOBODY;  /* the row of z */
byte current;         /* bit w: the number that w holds is that of the row */
mtype = {NOTHING, TAKES, GIVES_UP, DONE};
mtype sent[WORKERS];  /* the COMMIT that has left, and was not run */
byte killed;          /* bit w */

/* The transaction has written: from here on others see that it may take or give up the value. */
inline write_value(what)
{
    d_step { locked[namespace_of(w)] == 0 && (what == TAKES -> !held[namespace_of(w)] : held[namespace_of(w)]) -> locked[namespace_of(w)] = w + 1 }
}

/* The row becomes ours, or stays that of another; it has a new number when it is ours. */
inline global_reserve()
{
    d_step {
        if
        :: owner == NOBODY || owner == namespace_of(w) -> owner = namespace_of(w); current = bit(w)
        :: else -> current = current | bit(w) /* the number of the row as it was seen */
        fi;
        is_ours = (owner == namespace_of(w))
    }
}

/* Nothing but what has the number that we hold. */
inline global_drop(ns)
{
    d_step {
        if
#ifdef DROP_LATER_ONES
        :: owner == ns -> owner = NOBODY; current = 0
#else
        :: owner == ns && is_in(current, w) -> owner = NOBODY; current = 0
#endif
        :: else
        fi
    }
}

/* Has a document of that namespace the value?  A transaction that may change it has not ended: busy, and the commit is refused. */
inline global_check(ns)
{
    d_step {
#ifdef CHECK_WITHOUT_LOCK
        is_free = !held[ns]
#else
        is_free = locked[ns] == 0 && !held[ns]
#endif
    }
}

/* Reserves until the row is ours; not is_ours: the value is taken, or may be. */
inline reservations_take()
{
    do
    :: global_reserve();
       if
       :: is_ours -> break
       :: else ->
          global_check(other(namespace_of(w)));
          if
          :: is_free -> global_drop(other(namespace_of(w)))
          :: else -> break
          fi
       fi
    od
}

#define undo_of(w) locked[namespace_of(w)] = (locked[namespace_of(w)] == w + 1 -> 0 : locked[namespace_of(w)])
inline undo() { undo_of(w) }

/* What our own database has not is let go. */
inline reservations_settle()
{
    global_check(namespace_of(w));
    if
    :: is_free -> global_drop(namespace_of(w))
    :: else
    fi
}

inline commit_now(what)
{
    sent[w] = what;
    d_step { sent[w] == DONE -> sent[w] = NOTHING }
}

proctype process(byte w)
{
    bool is_ours, is_free;
begin:
    {
        do
        :: write_value(TAKES);
#ifdef RESERVE_LATE
           commit_now(TAKES);
           reservations_take()
#else
           reservations_take();
           if
           :: is_ours -> commit_now(TAKES)
           :: else -> undo(); reservations_settle()
           fi
#endif
        :: write_value(GIVES_UP);
           global_reserve();
           commit_now(GIVES_UP);
           reservations_settle()
        od
    } unless {
        d_step { is_in(killed, w) -> killed = killed & ~bit(w); is_ours = false; is_free = false; current = current & ~bit(w) }
    };
    goto begin
}

/* The session of w runs what it was sent; the end of w undoes what was not sent.  A former session ends before w begins again. */
proctype fate(byte w)
{
    do
    :: d_step { sent[w] == TAKES || sent[w] == GIVES_UP ->
           held[namespace_of(w)] = (sent[w] == TAKES);
           locked[namespace_of(w)] = 0;
           sent[w] = DONE }
    :: d_step { !is_in(killed, w) && sent[w] == NOTHING -> undo_of(w); killed = killed | bit(w) }
    :: d_step { !is_in(killed, w) && (sent[w] == TAKES || sent[w] == GIVES_UP) -> sent[w] = NOTHING; undo_of(w); killed = killed | bit(w) }
    :: d_step { !is_in(killed, w) && sent[w] == DONE -> sent[w] = NOTHING; killed = killed | bit(w) }
    od
}

active proctype twice()
{
    d_step { held[0] && held[1] -> assert(!(held[0] && held[1])) }
}

init
{
    byte i;
    atomic {
        do
        :: i < WORKERS ->
            sent[i] = NOTHING;
            run process(i);
            run fate(i);
            i++
        :: else -> break
        od
    }
}
