/* robust_lock: a lock in shared memory that outlives its holder, behind POSIX threads.
 *
 * One process at a time holds it.  When its holder ends without releasing it, by any signal, the kernel gives
 * it to the next process, which is told, repairs what the lock protects, and goes on.  Zeroed memory is a
 * lock once any process has passed it to robust_lock_init; all processes that map it do so. */
#ifndef STAMPD_EDGE_ROBUST_LOCK_H
#define STAMPD_EDGE_ROBUST_LOCK_H

#include "base/base.h"

enum { ROBUST_LOCK_WORDS = 16 };

struct robust_lock {
    _Alignas(8) uint32_t words[ROBUST_LOCK_WORDS];
};

enum robust_lock_result { ROBUST_LOCK_TAKEN, ROBUST_LOCK_INHERITED, ROBUST_LOCK_REFUSED };

/* May be called again, by any process, also while others use the lock. */
void robust_lock_init(struct robust_lock *lock);
/* INHERITED: the former holder has died; the caller must repair before it releases.  If it dies too, the next
 * one inherits.  REFUSED: another process has held it all this time (it is stopped, or very slow). */
MUST_USE enum robust_lock_result robust_lock_take(struct robust_lock *lock, int64_t timeout_ms);
void robust_lock_release(struct robust_lock *lock);

#endif
