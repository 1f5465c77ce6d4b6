/* lane: the records of one namespace on their way: a batch at a time, in order.
 *
 * While the server stores a batch, the lane notes in the spool what the server has stored before, and
 * composes the batch that follows. */
#ifndef STAMPD_FORWARD_LANE_H
#define STAMPD_FORWARD_LANE_H

#include "base/builder.h"
#include "edge/http.h"
#include "forward/forward_settings.h"
#include "spool/stampd_spool.h"

struct lane {
    struct lane *next;
    char *ns, *url;
    uint64_t *waiting; /* numbers of the records that are read and not yet stored by the server, in order */
    size_t count, capacity;
    size_t sent;  /* of them, the first ones are in the request that is under way; 0: none is */
    size_t ready; /* those behind them are composed as the next batch; 0: none are */
    size_t most;  /* records of the next batch */
    struct builder body, next_body;
    struct stampd_spool_range *stored; /* what the server has stored, to be acknowledged */
    size_t stored_count, stored_capacity;
    bool is_unnoted; /* it could not be acknowledged: nothing is sent until it can */
    int failures;    /* in a row */
    int64_t dead;    /* dead letters since a record was last stored: from dead_in_a_row on none is made */
    int64_t due_ms;  /* monotonic: not before */
};

struct lane *lane_create(const char *ns, const struct forward_settings *settings);
void lane_destroy(struct lane *lane);
void lane_add(struct lane *lane, uint64_t sequence);
/* Composes the next batch from the spool, unless it is ready, and sets `sent`.  Records whose param is no
 * JSON, or that are damaged or have no namespace, become dead letters first, and those that somebody has
 * dropped meanwhile are taken off: 0 may be left. */
MUST_USE int lane_compose(struct lane *lane, struct stampd_spool *spool,
                          const struct forward_settings *settings);
/* While a batch is under way: composes the one that follows, if there are enough records for a full one. */
MUST_USE int lane_prepare(struct lane *lane, struct stampd_spool *spool,
                          const struct forward_settings *settings);
/* Acknowledges what the server has stored; after a failure, when it is due.  False: it failed. */
bool lane_note_stored(struct lane *lane, struct stampd_spool *spool, const struct forward_settings *settings);
/* The answer to the batch: notes what is stored, buries, or plans another try. */
void lane_settle(struct lane *lane, struct stampd_spool *spool, const struct forward_settings *settings,
                 const struct http_result *result);
/* What an error of the spool means. */
const char *lane_words(int error);
/* Can it be the code of a namespace, and so a part of an address? */
bool lane_is_namespace(const char *ns);

#endif
