/* replication: commits that are visible, and not yet replicated; a standby takes over at any time.
 *
 * What is checked: whatever a session has acknowledged or returned is on the standby when it takes over (promises 1 and 2).
 * In the model is one session at a time: one that is open while somebody cancels the wait of another one sees what is not
 * replicated (doc/explanation/reliability.md). */

#ifndef COMMITS
#define COMMITS 4
#endif

byte made, visible, replicated; /* commits: in the log of the primary, shown by it, in the log of the standby */
byte returned;                  /* the last one that was acknowledged, or read by a client */
bool is_over;                   /* the standby has taken over */

/* A commit of its own: it is acknowledged when the standby has all that is in the log. */
inline proof_run(position)
{
    position = made;
    (replicated >= position || is_over)
}

inline session_open(position)
{
#ifdef NO_PROOF
    skip
#else
    proof_run(position)
#endif
}

/* The wait is over without the standby: it was cancelled, its session was ended, or the primary has started again. */
inline end_wait() { visible = made }

active proctype session()
{
    byte own;
end:
    do
    :: is_over -> break
    :: atomic { !is_over && made < COMMITS -> made++; own = made }
       if
       :: atomic { replicated >= own && !is_over -> visible = own; returned = own }
       :: atomic {
              !is_over -> end_wait();
#ifdef WARNING_IS_SUCCESS
              returned = own
#endif
          }
          session_open(own)
       :: is_over
       fi
    :: atomic { !is_over -> returned = (visible > returned -> visible : returned) } /* a read */
    od
}

active proctype standby()
{
end:
    do
    :: atomic { replicated < made && !is_over -> replicated++ }
    od
}

active proctype failover()
{
    atomic { is_over = true; assert(returned <= replicated) }
}
