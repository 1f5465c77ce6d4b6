/* records_host: what stamp-journal knows of the hosts that hold the records of spread namespaces together,
 * for the other programs of this host: metrics, top, the console. */
#ifndef STAMPD_RECORDS_RECORDS_HOST_H
#define STAMPD_RECORDS_RECORDS_HOST_H

#include "records/records.h"

enum {
    RECORDS_HOSTS_MOST = 64,
    RECORDS_HOST_ADDRESS = 128,   /* bytes, with the zero at the end; a longer address is cut */
    RECORDS_HOST_FRESH_MS = 15000 /* what is older is not shown: stamp-journal does not run */
};

enum records_host_state { RECORDS_HOST_AWAY, RECORDS_HOST_MEMBER, RECORDS_HOST_LEAVING };

/* As the host has reported it to z last: sql/0025_hosts.sql. */
struct records_host {
    char address[RECORDS_HOST_ADDRESS];
    uint64_t state;         /* enum records_host_state */
    uint64_t is_self;       /* it is this host */
    uint64_t is_exhaustive; /* it knows which keys are absent */
    int64_t unsure_ms;      /* until it does; -1: until all others have passed on what they have */
    uint64_t records, bytes, memory, doubtful, absent, missing, sent, received;
};

struct records_hosts {
    uint64_t version; /* of the list */
    int64_t at_ms;    /* monotonic; 0: never */
    uint64_t connected;
    uint64_t count;
    struct records_host list[RECORDS_HOSTS_MOST];
};

/* By one process. */
void records_host_write(struct records *records, const struct records_hosts *hosts);
/* False: this host is none of several, or what is known is old. */
MUST_USE bool records_host_read(const struct records *records, struct records_hosts *hosts_r);
/* The same for a process that only reads the file: as records_peek. */
MUST_USE bool records_host_peek(const char *path, struct records_hosts *hosts_r);
const char *records_host_word(uint64_t state);

#endif
