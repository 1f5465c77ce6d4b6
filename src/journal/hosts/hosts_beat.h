/* hosts_beat: what a host reports to z, and what it learns of the others (sql/0025_hosts.sql): by a child
 * process of stamp-journal, so that the loop never waits for PostgreSQL.
 *
 * Reports and sights are structs of one program, passed over a pair of sockets. */
#ifndef STAMPD_JOURNAL_HOSTS_HOSTS_BEAT_H
#define STAMPD_JOURNAL_HOSTS_HOSTS_BEAT_H

#include "base/settings.h"
#include "cluster/cluster.h"
#include "edge/crypto/crypto.h"
#include "edge/events.h"
#include "records/records.h"
#include "records/records_host.h"

enum { HOSTS_MOST = 64, HOSTS_ADDRESS_MOST = 511, HOSTS_ENDPOINT_MOST = 80, HOSTS_UUID = 36 };

struct hosts_report {
    uint32_t number; /* of this host; 0: it has none yet */
    struct cluster_report of;
    uint64_t doubt_over;
    uint64_t memory, content_most; /* bytes: for records, and of one content */
    uint32_t silent_count;
    int64_t silent[HOSTS_MOST], silent_beats[HOSTS_MOST];
    int64_t sent_ms; /* boot time: comes back with the sight */
};

struct hosts_member {
    char address[HOSTS_ADDRESS_MOST + 1], endpoint[HOSTS_ENDPOINT_MOST + 1];
    char fingerprint[CRYPTO_SHA256_HEX + 1];
    uint32_t number;
    bool is_guest;
    uint8_t alone; /* struct cluster_member */
    int64_t beat;
    uint64_t joined, content_most;
};

struct hosts_sight {
    bool is_notice; /* the list may have changed; nothing else is set */
    bool is_failed; /* z has not answered; nothing else is set */
    int64_t sent_ms;
    uint64_t version, seen, swept, doubt, doubt_over;
    bool is_doubted;
    uint32_t self; /* 0: this host is no member */
    int64_t copies, ttl_s;
    char places[HOSTS_UUID + 1];
    uint32_t count; /* 0: z does not know this host */
    struct hosts_member members[HOSTS_MOST];
    struct records_hosts all; /* also those that take no part now */
};

struct hosts_beat;
/* `seen` is called with each sight; its argument lives during the call. */
struct hosts_beat *hosts_beat_create(struct events *events, const struct settings *settings,
                                     struct records *records, const char *fingerprint,
                                     void (*seen)(void *context, const struct hosts_sight *sight),
                                     void *context) __attribute__((returns_nonnull));
void hosts_beat_destroy(struct hosts_beat *beat); /* NULL is allowed */
/* Sends a report, unless the one before is not answered yet.  A child that does not answer is replaced. */
void hosts_beat_send(struct hosts_beat *beat, const struct hosts_report *report);

#endif
