/* journal_rate: how many handshakes of TLS a listener begins: the most expensive thing that can be had
 * without a key.  A client's site (base/address.h) has a rate of its own, so that no stranger uses up that of
 * all others. */
#ifndef STAMPD_JOURNAL_JOURNAL_RATE_H
#define STAMPD_JOURNAL_JOURNAL_RATE_H

#include "base/base.h"

enum {
    JOURNAL_HANDSHAKES_S = 200, /* a second, of all; as many at once */
    JOURNAL_HANDSHAKES_OF_SITE_S = 10,
    JOURNAL_HANDSHAKES_AT_ONCE = 50, /* of one site */
    /* Sites share rates when their numbers share one, which a salt keeps them from choosing. */
    JOURNAL_RATES = 1024
};

struct journal_rate {
    uint64_t salt;
    int64_t due_ms, site_due_ms[JOURNAL_RATES]; /* when the handshakes of the past are paid for, monotonic */
};

/* Zeroed before. */
void journal_rate_begin(struct journal_rate *rate);
/* May this client begin one at this time?  Counts it. */
MUST_USE bool journal_rate_take(struct journal_rate *rate, uint64_t client, int64_t now_ms);

#endif
