/* agenda: tasks of one domain between the server, which knows which of them is next, and the queue manager, which
 * starts what wake-ups, scans and the ends of tasks bring, one of the domain at a time, and forgets the others.
 *
 * What is checked: the domain never stands still.  If nothing is on its way, and the manager knows no task of the
 * domain, runs none, and wants no scan, then no task waits. */

#define TASKS 3
#define NONE 255

/* The server.  Task 0 goes first, then 1, then 2 (strict order). */
bool is_waiting[TASKS];
byte made;            /* so many exist, or have existed */
byte holder = NONE;   /* the task that has begun */
bool has_looked;      /* its commit has looked for the next, and has not ended */
byte found;           /* what it has found */

/* On their way to the manager. */
bool news[TASKS];     /* wake-ups with the row */
bool scan_wakeup;     /* a wake-up without a row: more than a few tasks were made at once */

/* The manager. */
bool is_known[TASKS];
byte running = NONE;  /* the task of the domain whose request is under way */
bool has_followers, is_asked, is_answered, is_attempt;
byte next = NONE;     /* of the answer */
bool is_wanted, is_scanning, has_read;
byte read = NONE;     /* what the scan has found */

inline first_waiting(task) {
    if
    :: is_waiting[0] -> task = 0
    :: !is_waiting[0] && is_waiting[1] -> task = 1
    :: !is_waiting[0] && !is_waiting[1] && is_waiting[2] -> task = 2
    :: else -> task = NONE
    fi
}

/* Commits that make tasks: one, or all that are left. */
active proctype producer()
{
    do
    :: made < TASKS -> d_step { is_waiting[made] = true; news[made] = true; made++ }
    :: made < TASKS -> d_step {
           do
           :: made < TASKS -> is_waiting[made] = true; made++
           :: else -> break
           od;
           scan_wakeup = true
       }
    :: made == TASKS -> break
    od
}

/* A worker: claims the task of the request, looks for the next in the commit that ends it, answers. */
active proctype worker()
{
    byte first;
end:
    do
    :: atomic { running != NONE && is_asked && holder == NONE && !is_answered ->
           first_waiting(first);
           if
           :: first == running -> holder = running; is_waiting[running] = false
           :: else -> next = NONE; is_attempt = false; is_answered = true /* `turn`, `gone` */
           fi
       }
    :: d_step { holder != NONE && !has_looked -> first_waiting(found); has_looked = true }
    :: d_step { has_looked -> /* the commit, and its answer */
           next = found; holder = NONE; has_looked = false; is_attempt = true; is_answered = true
       }
    od
}

/* A worker that scans: the statement is executed as a whole. */
active proctype scanner()
{
end:
    do
    :: d_step { is_scanning && !has_read ->
           if
           :: holder == NONE -> first_waiting(read)
           :: else -> read = NONE
           fi;
           has_read = true
       }
    od
}

inline agenda_put(task) { is_known[task] = true }
inline want_scan() { is_wanted = true }
/* The scan will say nothing of a domain that runs a task. */
inline agenda_doubt() {
#if !defined(NO_DOUBT)
    has_followers = true
#else
    skip
#endif
}

active proctype manager()
{
end:
    do
    :: d_step { news[0] -> news[0] = false; agenda_put(0) }
    :: d_step { news[1] -> news[1] = false; agenda_put(1) }
    :: d_step { news[2] -> news[2] = false; agenda_put(2) }
    :: d_step { scan_wakeup -> scan_wakeup = false; agenda_doubt(); want_scan() }
    :: d_step { is_wanted && !is_scanning -> is_wanted = false; is_scanning = true }
    :: d_step { has_read ->
           if
           :: read != NONE -> agenda_put(read)
           :: else
           fi;
           read = NONE; has_read = false; is_scanning = false
       }
    :: d_step { running == NONE && (is_known[0] || is_known[1] || is_known[2]) ->
           if
           :: is_known[0] -> running = 0
           :: !is_known[0] && is_known[1] -> running = 1
           :: else -> running = 2
           fi;
           is_known[running] = false; has_followers = false; is_asked = true
       }
       /* agenda_take: its domain is busy */
    :: d_step { running != NONE && running != 0 && is_known[0] -> is_known[0] = false; has_followers = true }
    :: d_step { running != NONE && running != 1 && is_known[1] -> is_known[1] = false; has_followers = true }
    :: d_step { running != NONE && running != 2 && is_known[2] -> is_known[2] = false; has_followers = true }
    :: d_step { is_answered ->
           if
           :: next != NONE -> agenda_put(next)
#if defined(NO_SCAN_AFTER_REFUSAL)
           :: next == NONE && is_attempt && has_followers -> want_scan()
#elif defined(NO_SCAN_AFTER_END)
           :: next == NONE && !is_attempt -> want_scan()
#elif !defined(NO_SCAN)
           :: next == NONE && (!is_attempt || has_followers) -> want_scan()
#endif
           :: else
           fi;
           running = NONE; is_asked = false; is_answered = false; next = NONE
       }
    od
}

#define stands_still ((is_waiting[0] || is_waiting[1] || is_waiting[2]) && !(news[0] || news[1] || news[2] || scan_wakeup || \
    is_wanted || is_scanning || running != NONE || is_known[0] || is_known[1] || is_known[2]))

active proctype domain()
{
end:
    d_step { stands_still -> assert(!stands_still) }
}
