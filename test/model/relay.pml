/* relay: changes by others than the workers are sent by NOTIFY to its listeners, and the relay moves the stamp.
 * Its connection may be lost at any time, and with it the notifications sent and not yet received.
 *
 * What is checked: while the relay listens and has received all that was sent, a copy under the slot's stamp is the
 * newest (promise 1, as far as it can be kept for changes that nobody announces: a moment later). */

/* The stamp is left out as in freshness.pml: is the stamp in hand, is the copy's tag still the slot's? */
bool in_hand, is_tagged;
bool is_newest; /* the copy is what the database holds */

bool is_connected, is_listening;
bool is_settled; /* the relay has done all that it does after connecting */
bool sent;       /* a notification is on its way to the relay */

inline slots_move_all() { d_step { in_hand = false; is_tagged = false } }
inline slots_publish() { in_hand = false; is_tagged = false }
inline slots_see() { in_hand = true }
inline store_load() { is_newest = true; is_tagged = in_hand }
/* A notification has come. */
inline receive() { slots_publish(); sent = false }

active proctype administrator()
{
    do
    :: d_step { is_newest = false; sent = sent | is_listening } /* a commit, whose trigger notifies */
    od
}

active proctype relay()
{
    do
    :: !is_connected -> is_connected = true;
#if defined(MOVE_FIRST)
       slots_move_all();
       is_listening = true;
#elif defined(NO_MOVE)
       is_listening = true;
#else
       is_listening = true; /* LISTEN first, then all stamps */
       slots_move_all();
#endif
       is_settled = true
    :: d_step { is_connected && sent -> receive() }
    :: d_step { /* lost */
           is_connected -> is_connected = false;
           is_listening = false; is_settled = false; sent = false
       }
    od
}

active proctype reader()
{
    do
    :: slots_see();
       if
       :: is_tagged
       :: else -> d_step { store_load() }
       fi;
       in_hand = false
    od
}

#define lags (is_settled && !sent && is_tagged && !is_newest)

active proctype lag()
{
    d_step { lags -> assert(!lags) }
}
