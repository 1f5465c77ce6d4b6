/* lease: two hosts with hosts = pair on the same databases.  One holds the lease, a row in z, and serves; the other looks at the
 * row, and takes the lease when the row has not changed for DELAY.  Time is a number that moves whenever it likes: any step may
 * last, each process may stand still for long, and only the rate of the clocks is the same.
 *
 * What is checked: a read is not older than what was acknowledged or returned before it began, on either host. */

#ifndef LIMIT
#define LIMIT 1
#endif
#ifndef DELAY
#define DELAY LIMIT
#endif
#ifndef TIME
#define TIME 2
#endif
#ifndef TURNS
#define TURNS 2
#endif
#ifndef READS
#define READS 2
#endif
#ifndef READER
#define READER 0 /* the host that reads; the other one writes once */
#endif
#define NOBODY 2

byte now;
byte owner, beat; /* the row in z: the first host has the lease at first */
byte document = 1; /* its version in the database */
byte known = 1; /* the highest version that was acknowledged or returned */
bool lock[2]; /* the session of a host holds its advisory lock */

/* Of the segment of each host. */
byte until[2]; /* memory proves nothing from this time on */
byte stamp[2];
bool has_lease[2]; /* may open sessions */

proctype clock()
{
end:
    do
    :: now < TIME -> now++
    :: else -> break
    od
}

inline lease_beat()
{
#ifdef SENT_LATE
    atomic { is_given = owner == host; beat = (is_given -> beat + 1 : beat) };
    sent = now;
#else
    sent = now;
    atomic { is_given = owner == host; beat = (is_given -> beat + 1 : beat) };
#endif
    if
    :: is_given -> until[host] = sent + LIMIT
    :: else -> atomic { has_lease[host] = false; until[host] = 0 }
    fi
}

/* An orderly end, behind that of all sessions. */
inline lease_release()
{
    has_lease[host] = false;
#ifdef RELEASE_FIRST
    atomic { lock[host] = false; owner = (owner == host -> NOBODY : owner) };
    until[host] = 0
#else
    until[host] = 0;
    atomic { lock[host] = false; owner = (owner == host -> NOBODY : owner) }
#endif
}

inline lease_take()
{
    sent = now;
#ifdef NO_COMPARISON
    atomic { is_given = true; owner = host; beat++ };
#else
    atomic {
        is_given = owner == seen_owner && beat == seen;
        if
        :: is_given -> owner = host; beat++
        :: else
        fi
    };
#endif
    if
    :: is_given ->
#ifndef NO_MOVE
        stamp[host]++; /* slots_move_all */
#endif
        atomic { until[host] = sent + LIMIT; has_lease[host] = true }
    :: else
    fi
}

inline lease_watch()
{
#ifdef SINCE_BEFORE_LOOK
    since = now;
    atomic { seen_owner = owner; seen = beat };
#else
    atomic { seen_owner = owner; seen = beat };
    since = now;
#endif
    if
    :: seen_owner != NOBODY && seen_owner != host -> now >= since + DELAY || now == TIME
    :: else
    fi;
    if
    :: seen_owner == NOBODY || seen_owner == host || now >= since + DELAY -> lease_take()
    :: else
    fi
}

/* The process `lease` of a host. */
proctype lease(byte host)
{
    byte seen, seen_owner, since, sent;
    byte turns;
    bool is_given;
end:
    do
    :: turns == TURNS -> break
    :: turns < TURNS ->
        turns++;
        if
        :: has_lease[host] -> lease_beat()
        :: has_lease[host] -> lease_release()
        :: !has_lease[host] -> lease_watch()
        fi;
        atomic { seen = 0; seen_owner = 0; since = 0; sent = 0; is_given = false }
    od
}

inline slots_may_prove()
{
    is_proven = now < until[host]
}

/* `is_open`: the lock is held, and the row names the host, as seen under the lock. */
inline session_open()
{
    is_open = lock[host];
    if
    :: !is_open && has_lease[host] ->
#ifdef NO_VERIFY
        is_open = owner == host;
#else
        is_open = true;
#endif
        if
        :: is_open ->
#ifdef NO_END
            lock[host] = true;
#else
            atomic { lock[1 - host] = false; lock[host] = true };
#endif
#ifndef NO_VERIFY
            if
            :: owner == host
            :: else -> lock[host] = false; is_open = false
            fi
#endif
        :: else
        fi
    :: else
    fi
}

proctype worker(byte host)
{
    byte reads, copy, tag, noted, floor, shown;
    bool is_open, is_proven, has_written;
end:
    do
    :: host == READER && reads < READS ->
        atomic { reads++; floor = known; slots_may_prove() };
#ifdef STAMP_FIRST
        atomic { is_proven = true; noted = stamp[host] };
        slots_may_prove();
#else
        noted = stamp[host];
#endif
#ifdef NO_LIMIT
        is_proven = true;
#endif
        if
        :: copy && tag == noted && is_proven -> shown = copy
        :: else ->
            session_open();
            if
            :: is_open ->
                atomic {
                    if
                    :: lock[host] -> shown = document; copy = document; tag = noted
                    :: else
                    fi
                }
            :: else
            fi
        fi;
        atomic {
            assert(!shown || shown >= floor);
            known = (shown > known -> shown : known);
            shown = 0; floor = 0; noted = 0; is_open = false; is_proven = false
        }
    :: host != READER && !has_written ->
        has_written = true;
        session_open();
        atomic {
            if
            :: is_open && lock[host] -> document++; stamp[host]++; known = document
            :: else
            fi;
            is_open = false
        }
    :: reads == READS || has_written -> break
    od
}

init
{
    atomic {
        until[0] = LIMIT;
        has_lease[0] = true;
        run clock();
        run lease(0);
        run lease(1);
        run worker(0);
        run worker(1)
    }
}
