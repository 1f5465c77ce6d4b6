/* push_send: sends a message for a browser to its push service (RFC 8030), and waits for the answer. */
#ifndef STAMPD_OPERATION_PUSH_PUSH_SEND_H
#define STAMPD_OPERATION_PUSH_PUSH_SEND_H

#include "base/builder.h"
#include "base/fault.h"
#include "base/settings.h"
#include "edge/crypto/curve.h"
#include "operation/push/webpush.h"

enum push_verdict {
    PUSH_TAKEN,
    PUSH_GONE,      /* the subscription has ended permanently */
    PUSH_TOO_LARGE, /* a smaller text may be accepted */
    PUSH_LATER,     /* the service is busy, broken or unreachable */
    PUSH_REFUSED,   /* the same message would be refused again */
};

struct push_outcome {
    enum push_verdict verdict;
    int64_t retry_after_s; /* PUSH_LATER: the wait that the service requests; 0: none given */
    const char *words;     /* why it was not accepted, UTF-8, without the address; in the arena */
};

/* Permits addresses on the loopback, and http:.  In tests only. */
bool push_send_may_be_local(const struct settings *settings);

/* Is the origin, "https://host", a push service that the setting push_services lists?  Returns a refusal in
 * one sentence; NULL: it is listed, or is on the loopback where that is permitted. */
const char *push_send_refuse_service(const struct settings *settings, struct bytes origin);

/* Blocks the process for at most some 3 seconds.  A service that has not answered several times in a row is
 * skipped for a while, which doubles each time: the result is PUSH_LATER at once.  If the service stores a
 * message with the same `topic` (up to 32 letters of base64; NULL: none) that the browser has not fetched,
 * this one replaces it. */
void push_send(const struct settings *settings, struct arena *arena, const struct webpush_target *target,
               const struct curve_key *key, struct bytes text, const char *topic,
               struct push_outcome *outcome_r);

/* --- push key --- */

/* The keys that identify the server to push services (VAPID).  The secret key is the first line of
 * the file of setting push_key_file: 32 bytes in base64, a form that other programs use too. */

/* Reads the keys of a file; on failure one line in `problem`, which contains nothing of the file's text. */
MUST_USE bool push_key_read(const char *path, struct curve_key *key_r, char *problem, size_t problem_size);
/* The keys of the server, which the caller erases.  FAULT_OPUSH: it has none, or its file is unusable, which
 * has been logged. */
MUST_USE enum fault push_key_fetch(const struct settings *settings, struct curve_key *key_r);
/* Appends the line of such a file, and the applicationServerKey for browsers. */
void push_key_add_secret(struct builder *builder, const struct curve_key *key);
void push_key_add_public(struct builder *builder, const struct curve_key *key);

#endif
