/* mail_send: sends a mail about an account through the mail server of the settings, and waits for its reply.
 *
 * The connection is encrypted, with a checked certificate, unless the server is on the loopback and mail_tls
 * is off.  Blocks the process for at most mail_timeout_s. */
#ifndef STAMPD_OPERATION_ACCOUNTS_MAIL_SEND_H
#define STAMPD_OPERATION_ACCOUNTS_MAIL_SEND_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/settings.h"

enum mail_verdict {
    MAIL_TAKEN,
    MAIL_LATER,  /* the server is busy, broken, unreachable, or set up wrongly */
    MAIL_REFUSED /* by a reply of 500 or more: the same mail would be refused again */
};

struct mail_outcome {
    enum mail_verdict verdict;
    const char *words; /* why it was not accepted, in the arena */
};

/* `from` and `to` are addresses; `text` is the whole mail. */
void mail_send(const struct settings *settings, struct arena *arena, const char *from, const char *to,
               struct bytes text, struct mail_outcome *outcome_r);

#endif
