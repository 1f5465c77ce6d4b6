/* records_road: the way of a program of this host to records that several hosts hold together: commands for
 * its stamp-journal, which asks the others, over a Unix socket.  What may be done was decided before.
 *
 * A message has a head of two numbers, its layout and its size, then numbers, then texts.  Both ends are of
 * this release; of another layout nothing is read. */
#ifndef STAMPD_RECORDS_RECORDS_ROAD_H
#define STAMPD_RECORDS_RECORDS_ROAD_H

#include "records/records.h"

/* The socket stands beside that of stamp-journal. */
#define RECORDS_ROAD_SUFFIX ".hosts"

enum records_road_reading { RECORDS_ROAD_WHOLE, RECORDS_ROAD_PARTIAL, RECORDS_ROAD_MALFORMED };

struct records_road_command {
    struct bytes ns;
    struct records_command command; /* its payer is the one below, or NULL */
    struct records_payer payer;
};

void records_road_write(struct builder *out, struct bytes ns, const struct records_command *command);
/* Reads the first one; its texts are slices of `bytes`. */
MUST_USE enum records_road_reading records_road_read(struct bytes bytes, struct records_road_command *road_r,
                                                     size_t *used_r);
void records_road_write_answer(struct builder *out, enum records_outcome outcome,
                               const struct records_found *found);
MUST_USE enum records_road_reading records_road_read_answer(struct bytes bytes,
                                                            enum records_outcome *outcome_r,
                                                            struct records_found *found_r, size_t *used_r);

struct records_road_wait {
    int64_t until_ms; /* monotonic */
    /* Called once, when the answer does not come at once; false: it is not waited for.  NULL: it is. */
    bool (*may_go_on)(void *context);
    void *context;
};

/* Runs the command over the connection of this process, which it makes where there is none.  As records_run,
 * but:
 *   UNKNOWN          no answer has come in time, and the command may have happened, or happen yet
 *   NO_PARTICIPANTS  this host takes no part, or no stamp-journal listens: nothing has happened
 *   BUSY             nothing has happened
 * The texts of found_r are valid until the next call. */
enum records_outcome records_road_run(const char *path, struct bytes ns,
                                      const struct records_command *command,
                                      const struct records_road_wait *wait, struct records_found *found_r);

#endif
