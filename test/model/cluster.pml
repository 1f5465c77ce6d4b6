/* cluster: one key on three hosts, 0 the nearest, with one copy of its record.  Host 0 has just joined: it has nothing, and
 * cannot know what is absent.  Two clients insert, read or remove; one host may die.  HELD: there
 * is an acknowledged record before, at hosts 1 and 2.  ENDS: one client changes it to an earlier end, which comes once
 * at all hosts, and the other one reads.
 *
 * What is checked: nobody is told that the key is free, or inserts it, while an acknowledged record is there; nobody finds it
 * after an acknowledged removal, or after the end that an acknowledged change gave it.  What one host does with one message is one step; everything else lies between. */

#define HOSTS 3
#define COPIES 1
#define NONE 255

#define NOTHING 0 /* what a host has */
#define RECORD 1
#define REMOVED 2

#define PASSED 0 /* answers, and ends of copies */
#define REDO 1
#define WAITS 2
#define OK 3
#define FOUND 4
#define ABSENT 5
#define UNKNOWN 6

byte has[HOSTS], stamp[HOSTS], server[HOSTS];
bool is_dead[HOSTS], is_out[HOSTS], has_swept[HOSTS];
bool is_settled; /* host 0 knows what is absent; the others always do */
byte version;

/* The copies of one change that a host has under way; `asker` waits for their end. */
bool is_busy[HOSTS], is_sent[HOSTS];
byte place[HOSTS], holders[HOSTS], nearer[HOSTS], seen[HOSTS], asker[HOSTS];
byte answer[2];       /* of the clients */
bool is_refused[6];   /* at each host, an insertion of each client, which may yet happen at a farther one */

/* What is so, whatever hosts know. */
byte life, lives;   /* 0: no acknowledged record must be there */
byte inserts;       /* that have begun */
bool is_gone;       /* a removal is acknowledged, and no insertion has begun since it did; or it has ended */
bool is_changed, is_ended;

inline cluster_copy_begin(host, client) {
    is_busy[host] = true; is_sent[host] = false; place[host] = 0; holders[host] = 0; nearer[host] = NONE;
    seen[host] = version; asker[host] = client
}

inline end_copies(host, how) {
    if
    :: asker[host] != NONE -> answer[asker[host]] = how
    :: else
    fi;
    is_busy[host] = false; is_sent[host] = false; asker[host] = NONE;
    server[host] = (how == OK && nearer[host] != NONE -> nearer[host] : host)
}

/* A copy arrives.  Who has a later change keeps it; who loses one of its own lets its client start again. */
inline cluster_copy_accept(from, to) {
    if
    :: has[to] != NOTHING && stamp[to] >= stamp[from] -> is_sent[from] = true
    :: else ->
           if
           :: is_busy[to] -> end_copies(to, REDO)
           :: else
           fi;
           has[to] = has[from]; stamp[to] = stamp[from]; is_sent[from] = true;
           server[to] = (from < to -> from : to)
    fi
}

/* Its answer arrives. */
inline cluster_copy_heed(host) {
    is_sent[host] = false;
    if
    :: stamp[place[host]] > stamp[host] && !is_dead[place[host]] ->
           has[host] = has[place[host]]; stamp[host] = stamp[place[host]];
           nearer[host] = (place[host] < host -> place[host] : nearer[host]);
           server[host] = (place[host] < host -> place[host] : host);
           if
           :: asker[host] != NONE -> answer[asker[host]] = REDO
           :: else
           fi;
           is_busy[host] = false; asker[host] = NONE
    :: else ->
           holders[host]++;
           if
           :: place[host] < host && nearer[host] == NONE -> nearer[host] = place[host]
           :: else
           fi;
           place[host]++
    fi
}

proctype copier(byte self)
{
end:
    do
       /* Another list of hosts: which hosts shall have it is decided anew. */
    :: d_step { !is_dead[self] && is_busy[self] && seen[self] != version ->
           seen[self] = version; place[self] = 0; holders[self] = 0; nearer[self] = NONE; is_sent[self] = false }
    :: d_step { !is_dead[self] && is_busy[self] && seen[self] == version && !is_sent[self] ->
           if
           :: holders[self] > COPIES || place[self] == HOSTS -> end_copies(self, OK)
           :: holders[self] <= COPIES && place[self] < HOSTS ->
                  if
                  :: is_out[place[self]] -> place[self]++
                  :: !is_out[place[self]] && place[self] == self -> holders[self]++; place[self]++
                  :: !is_out[place[self]] && place[self] != self && !is_dead[place[self]] ->
                         cluster_copy_accept(self, place[self])
                  :: else -> end_copies(self, UNKNOWN)
                  fi
           fi
       }
#if defined(NO_WAIT)
    :: d_step { !is_dead[self] && is_busy[self] && asker[self] != NONE -> answer[asker[self]] = OK; asker[self] = NONE }
#endif
    :: d_step { !is_dead[self] && is_busy[self] && seen[self] == version && is_sent[self] -> cluster_copy_heed(self) }
       /* The sweep. */
    :: d_step { !is_dead[self] && !is_busy[self] && !has_swept[self] ->
           has_swept[self] = true;
           if
           :: has[self] != NOTHING && (server[self] == self || is_out[server[self]]) -> cluster_copy_begin(self, NONE)
           :: else
           fi
       }
    od
}

#if defined(SETTLED_EARLY)
#define has_passed_on(host) (is_out[host] || has_swept[host])
#else
#define has_passed_on(host) (is_out[host] || (has_swept[host] && !is_busy[host]))
#endif

#if defined(ENDS)
/* The record ends at this host: it is remembered, since a copy of an earlier change may end later. */
inline cluster_table_expire(host) {
    if
    :: has[host] == RECORD && stamp[host] > 1 ->
#if defined(FORGET_END)
           has[host] = NOTHING; stamp[host] = 0;
           if
           :: is_busy[host] -> end_copies(host, UNKNOWN)
           :: else
           fi
#else
           has[host] = REMOVED
#endif
    :: else
    fi
}

active proctype clock()
{
end:
    d_step { stamp[0] > 1 || stamp[1] > 1 || stamp[2] > 1 ->
        cluster_table_expire(0); cluster_table_expire(1); cluster_table_expire(2);
        is_ended = true; is_gone = is_changed }
}
#endif

/* z: removes a dead host; knows when all have passed on what host 0 should have. */
active proctype z()
{
end:
    do
    :: d_step { is_dead[0] && !is_out[0] -> is_out[0] = true; version++ }
    :: d_step { is_dead[1] && !is_out[1] -> is_out[1] = true; version++; has_swept[0] = false; has_swept[2] = false }
    :: d_step { is_dead[2] && !is_out[2] -> is_out[2] = true; version++; has_swept[0] = false; has_swept[1] = false }
    :: d_step { !is_settled && has_passed_on(1) && has_passed_on(2) -> is_settled = true }
    od
}

inline die(host) {
    is_dead[host] = true;
    if
    :: asker[host] != NONE -> answer[asker[host]] = UNKNOWN
    :: else
    fi;
    asker[host] = NONE
}

active proctype saboteur()
{
    if
    :: d_step { die(0) }
    :: d_step { die(1) }
    :: d_step { die(2) }
    :: skip
    fi
}

#define INSERT 0
#define READ 1
#define REMOVE 2
#define CHANGE 3

#if defined(JOINER_KNOWS)
#define knows(host) true
#else
#define knows(host) (host != 0 || is_settled || has[host] == REMOVED)
#endif

/* What a host answers to a question. */
inline cluster_serve(host) {
    if
    :: is_busy[host] -> answer[self] = REDO
    :: !is_busy[host] && has[host] == RECORD && server[host] != host && !is_out[server[host]] && !is_tainted ->
           answer[self] = REDO
    :: !is_busy[host] && has[host] == RECORD && (server[host] == host || is_out[server[host]] || is_tainted) ->
           if
           :: deed == CHANGE -> stamp[host]++; answer[self] = WAITS; cluster_copy_begin(host, self)
           :: deed == REMOVE -> has[host] = REMOVED; stamp[host]++; answer[self] = WAITS; cluster_copy_begin(host, self)
           :: else -> answer[self] = FOUND
           fi
    :: !is_busy[host] && has[host] != RECORD && !knows(host) ->
           is_refused[host * 2 + self] = (deed == INSERT); answer[self] = PASSED
    :: !is_busy[host] && has[host] != RECORD && knows(host) ->
           if
           :: is_tainted -> answer[self] = UNKNOWN
           :: !is_tainted && deed != INSERT -> answer[self] = ABSENT
#if !defined(FORGET_REFUSAL)
           :: !is_tainted && deed == INSERT && is_refused[host * 2 + 1 - self] ->
                  answer[self] = REDO
#endif
           :: else ->
                  has[host] = RECORD; stamp[host]++; answer[self] = WAITS; server[host] = host;
                  cluster_copy_begin(host, self)
           fi
    fi
}

#define is_over (answer[self] == OK || answer[self] == FOUND || answer[self] == ABSENT || answer[self] == UNKNOWN)

proctype client(byte self)
{
    byte at, deed, walked, was_life, was_inserts;
    bool is_tainted, was_gone;
    bool is_false_absence, is_false_insertion, has_come_back;
#if defined(ENDS)
    deed = (self == 0 -> CHANGE : READ);
#else
    if
    :: deed = INSERT
    :: deed = READ
    :: deed = REMOVE
    fi;
#endif
    d_step {
        was_life = life; was_gone = is_gone; answer[self] = REDO;
        if
        :: deed == REMOVE || deed == CHANGE -> life = 0
        :: deed == INSERT -> inserts++; is_gone = false
        :: else
        fi;
        was_inserts = inserts
    }
    do
    :: d_step { answer[self] == REDO || (answer[self] == PASSED && walked != version) ->
           at = 0; is_tainted = false; walked = version; answer[self] = PASSED }
    :: d_step { answer[self] == PASSED && walked == version && at == HOSTS -> answer[self] = UNKNOWN }
    :: d_step { answer[self] == PASSED && walked == version && at < HOSTS ->
           if
           :: is_out[at] -> skip
           :: !is_out[at] && is_dead[at] -> is_tainted = true
           :: else -> cluster_serve(at)
           fi;
           at++
       }
    :: d_step { is_over ->
           is_refused[self] = false; is_refused[2 + self] = false; is_refused[4 + self] = false;
           is_false_absence = (answer[self] == ABSENT && was_life != 0 && life == was_life);
           is_false_insertion = (answer[self] == OK && deed == INSERT && life != 0);
           has_come_back = (answer[self] == FOUND && was_gone && is_gone && !is_tainted);
           if
           :: answer[self] == OK && deed == INSERT -> lives++; life = lives
           :: answer[self] == OK && deed == CHANGE -> is_changed = !is_ended
           :: answer[self] == OK && deed == REMOVE && was_inserts == inserts -> is_gone = true
           :: else
           fi
       }
       assert(!is_false_absence);
       assert(!is_false_insertion);
       assert(!has_come_back);
       break
    od
}

init {
    atomic {
        server[0] = 0; server[1] = 1; server[2] = 2;
        asker[0] = NONE; asker[1] = NONE; asker[2] = NONE;
#if defined(HELD)
        has[1] = RECORD; has[2] = RECORD; stamp[1] = 1; stamp[2] = 1; server[2] = 1; lives = 1; life = 1;
#endif
        run copier(0); run copier(1); run copier(2);
        run client(0); run client(1)
    }
}
