/* primaries: two servers call themselves primary: a standby has taken over, and the former primary goes on.  A list of hosts
 * leads a new session to either.  Workers die at any step, and begin again without copies.
 *
 * What is checked: a read that begins after an answer of the new history is not answered by the former one, from a session or
 * from memory, and no copy is completed by another history than its own.  What commits of the former primary lose is not in
 * the model: synchronous replication keeps it from acknowledging any (replication.pml). */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef READS
#define READS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif

#define NOBODY 255

bool has_taken_over;
byte timeline = 1, settled = 1, drops, stamp; /* of the host's segment */
byte victim = NOBODY; /* is about to die */
bool is_new; /* something of the new history was returned */

inline lineage_drop()
{
    drops++;
    stamp++
}

/* `server` becomes 0: it is a former primary. */
inline lineage_meet(server)
{
#ifdef NO_TIMELINE
    skip
#else
    if
    :: timeline > server -> server = 0
#ifdef SETTLED_AT_ONCE
    :: timeline == server
    :: timeline < server ->
#else
    :: timeline <= server && settled == server
    :: timeline <= server && settled != server ->
#endif
#ifdef NO_DROP
        timeline = server;
#else
#ifdef DROP_FIRST
        lineage_drop();
        timeline = server;
#else
        timeline = server;
        lineage_drop();
#endif
#endif
        settled = server
    fi
#endif
}

/* `session` becomes 0: refused. */
inline store_use(session)
{
#ifndef NO_TIMELINE
    if
    :: session && session != timeline -> session = 0
    :: else
    fi;
#endif
    if
    :: session
    :: !session ->
        if
        :: session = 1
        :: has_taken_over -> session = 2
        fi;
        lineage_meet(session)
    fi
}

/* The copies of this process are dropped when others have asked for it; `was` says whether they were. */
inline documents_heed_lineage(was)
{
    atomic {
        was = own_drops != drops;
        own_drops = drops;
        base = (was -> 0 : base)
    }
}

active [WORKERS] proctype worker()
{
    byte session, own_drops, base, tag; /* base: the history of its copy; 0: there is none */
    byte reads, seen, completed, shown;
    bool is_late, was;
end:
    do
    :: reads == READS -> break
    :: reads < READS ->
        {
            reads++;
            is_late = is_new;
            documents_heed_lineage(was);
            seen = stamp;
            if
            :: atomic { base && tag == seen -> shown = base }
            :: else ->
                completed = base;
                do
                :: store_use(session);
                    if
                    :: !session -> shown = 0; break
                    :: else
                    fi;
                    shown = session; /* the query, on this server */
#ifdef NO_LOOK_BACK
                    break
#else
                    documents_heed_lineage(was);
                    if
                    :: was -> completed = 0
                    :: else -> break
                    fi
#endif
                od;
                atomic {
                    assert(!shown || !completed || completed == shown); /* is_of_one_history */
                    if
                    :: shown -> base = shown; tag = seen
                    :: else
                    fi
                }
            fi;
            atomic {
                assert(!is_late || shown != 1); /* went_back */
                is_new = is_new || shown == 2;
                shown = 0; seen = 0; completed = 0; is_late = false; was = false
            }
        } unless {
            atomic { victim == _pid -> victim = NOBODY; session = 0; own_drops = drops; base = 0; tag = 0; shown = 0; seen = 0; completed = 0; is_late = false; was = false }
        }
    od
}

active proctype standby()
{
    has_taken_over = true
}

active proctype killer()
{
    byte deaths;
end:
    do
    :: deaths == DEATHS -> break
    :: atomic {
            deaths < DEATHS && victim == NOBODY -> deaths++;
            select(victim : 0 .. WORKERS - 1)
        }
    od
}
