/* journal_rate: by arrival times: each handshake moves the time at which the past is paid for. */
#include "journal/journal_rate.h"

#include "base/address.h"
#include "edge/crypto/crypto.h"

void journal_rate_begin(struct journal_rate *rate)
{
    crypto_random(&rate->salt, sizeof rate->salt);
}

/* One more at `due`, each of which takes `each_ms`, with so many at once? */
static bool has_rate(int64_t due_ms, int64_t now_ms, int64_t each_ms, int64_t at_once)
{
    return due_ms - now_ms <= each_ms * (at_once - 1);
}

static void count_one(int64_t *due_ms, int64_t now_ms, int64_t each_ms)
{
    *due_ms = (*due_ms > now_ms ? *due_ms : now_ms) + each_ms;
}

bool journal_rate_take(struct journal_rate *rate, uint64_t client, int64_t now_ms)
{
    enum { EACH_MS = 1000 / JOURNAL_HANDSHAKES_S, OF_SITE_MS = 1000 / JOURNAL_HANDSHAKES_OF_SITE_S };
    const uint64_t factor = 0x9e3779b97f4a7c15;
    int64_t *due_ms = &rate->site_due_ms[((address_site(client) ^ rate->salt) * factor) >> 54];
    if (!has_rate(rate->due_ms, now_ms, EACH_MS, JOURNAL_HANDSHAKES_S) ||
        !has_rate(*due_ms, now_ms, OF_SITE_MS, JOURNAL_HANDSHAKES_AT_ONCE))
        return false;
    count_one(&rate->due_ms, now_ms, EACH_MS);
    count_one(due_ms, now_ms, OF_SITE_MS);
    return true;
}
