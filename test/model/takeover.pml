/* takeover: an instance is gone, one of its processes left a mark, and the other instances of the host find its entry.  Each
 * has a master, which takes the entry over, and a recovery process, its child, which repairs; both may be killed.  A free entry
 * is given to a new worker of the first instance that asks, and that worker marks again.
 *
 * What is checked: nobody wipes the mark of a living worker (which would break promise 2), and nobody waits for ever.
 *
 * Sizes: INSTANCES, DEATHS (of masters and recovery processes). */

#ifndef INSTANCES
#define INSTANCES 2
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#define GONE 255 /* the number of the instance that is gone */
#define FREE 0   /* no instance: `instance` of an entry */

byte instance = GONE; /* whose entry it is */
bool ns = true;       /* a commit may be in flight */
bool mark = true;     /* in a slot */
bool is_living;       /* the mark is that of a living worker */
byte lock;            /* who holds the lock on the file of the one that is gone: masters, then recovery processes, a bit each */
byte deaths;
byte masters = (1 << INSTANCES) - 1, recoveries; /* that live */

#define bit(i) (1 << (i))
#define is_in(set, i) (((set) >> (i)) & 1)
#define MASTER(i) (i)
#define RECOVERY(i) (INSTANCES + (i))
#define drop(holder) lock = lock & ~bit(holder)
#ifdef NO_TAKEOVER
#define may_take_over(i) true
#else
#define may_take_over(i) (lock == 0) /* the kernel gives it to one */
#endif
#ifdef NO_SECOND_CHECK
#define is_still_in_doubt true
#else
#define is_still_in_doubt (instance == GONE && ns)
#endif

/* The former session is gone before; the stamp moves before the mark goes. */
inline slots_sweep()
{
    if
    :: mark -> d_step { assert(!is_living); mark = false }
    :: else
    fi;
    ns = false
}
#define processes_release() instance == GONE && !ns -> instance = FREE
#define processes_take(i) instance == FREE -> instance = i + 1

proctype recovery(byte i)
{
end:
    is_in(recoveries, i);
    {
        if
        :: is_still_in_doubt -> slots_sweep()
        :: else
        fi;
        d_step { recoveries = recoveries & ~bit(i); drop(RECOVERY(i)) }
    } unless {
        !is_in(recoveries, i)
    };
    goto end
}

proctype master(byte i)
{
    {
        do
        :: instance == GONE ->
           if
           :: d_step { may_take_over(i) -> lock = lock | bit(MASTER(i)) };
              if
              :: is_still_in_doubt ->
                 d_step { /* fork */
                     recoveries = recoveries | bit(i);
#ifndef TAKEOVER_NOT_PASSED_ON
                     lock = lock | bit(RECOVERY(i))
#endif
                 };
                 !is_in(recoveries, i) /* waitpid */
              :: else
              fi;
              if
              :: d_step { processes_release() }
              :: else
              fi;
              drop(MASTER(i))
           :: instance != GONE
           fi
        :: d_step { processes_take(i) }
        :: d_step { instance == i + 1 && !mark -> ns = true; mark = true; is_living = true } /* its worker commits */
        :: d_step { instance == i + 1 && is_living -> mark = false; ns = false; is_living = false }
        od
    } unless {
        !is_in(masters, i)
    }
}

/* A master that has taken the entry stays alive: else all would begin again with another number. */
proctype death(byte i)
{
    do
    :: d_step { deaths < DEATHS && is_in(masters, i) && instance != i + 1 ->
           deaths++; masters = masters & ~bit(i); drop(MASTER(i)) }
    :: d_step { deaths < DEATHS && is_in(recoveries, i) -> deaths++; recoveries = recoveries & ~bit(i); drop(RECOVERY(i)) }
    :: d_step { is_in(recoveries, i) && !is_in(masters, i) -> recoveries = recoveries & ~bit(i); drop(RECOVERY(i)) } /* a moment later */
    :: !is_in(masters | recoveries, i) -> break
    od
}

init
{
    byte i;
    atomic {
        do
        :: i < INSTANCES -> run master(i); run recovery(i); run death(i); i++
        :: else -> break
        od
    }
}
