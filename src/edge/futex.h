/* futex: waits on a word of shared memory until another process changes it and wakes the waiter (Linux). */
#ifndef STAMPD_EDGE_FUTEX_H
#define STAMPD_EDGE_FUTEX_H

#include <stdatomic.h>

#include "base/base.h"

/* Sleeps while the word is `seen`, at most `ms`; may return early without a reason: check again. */
void futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t ms);
/* Wakes one process that sleeps on the word. */
void futex_wake(_Atomic uint32_t *word);

#endif
