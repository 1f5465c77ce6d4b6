/* cluster_world: hosts of a cluster on a simulated network, with simulated clocks and a z: the code of
 * src/cluster as it is, and everything that may go wrong between it, drawn from a seed. */
#ifndef STAMPD_TEST_CLUSTER_WORLD_H
#define STAMPD_TEST_CLUSTER_WORLD_H

#include "cluster/cluster.h"

enum { WORLD_MS = 1000 }; /* the world's time is in microseconds */

struct world;

struct world_settings {
    uint32_t hosts_most;
    unsigned depth;
    struct cluster_settings cluster;
    int64_t lease_ms,
        lapse_ms; /* a host is sure for so long; z removes it after so long without a heartbeat */
    int64_t beat_ms;
    unsigned seed;
};

/* An answer that arrives at the host that asked. */
typedef void world_answer(void *context, uint64_t cookie, const struct cluster_answer *answer);

struct world *world_create(const struct world_settings *settings, world_answer *answer, void *context);
void world_destroy(struct world *world);
int64_t world_now(const struct world *world);
uint32_t world_random(struct world *world, uint32_t below);
/* Until this time of the world. */
void world_run(struct world *world, int64_t until_us);

/* Hosts are known by their place, 0 and up; the address is the place in the base of `fan`. */
void world_start(struct world *world, uint32_t host, uint32_t fan, const struct cluster_bounds *bounds);
/* The first so many, which `z` knows from the beginning. */
void world_start_all(struct world *world, uint32_t count, uint32_t fan, const struct cluster_bounds *bounds);
void world_kill(struct world *world, uint32_t host);
/* The host asks to leave: it is a guest from then on, and killed when it has passed on all. */
void world_leave(struct world *world, uint32_t host);
bool world_is_alive(const struct world *world, uint32_t host);
/* NULL: it is not alive. */
struct cluster_host *world_host(struct world *world, uint32_t host);
bool world_ask(struct world *world, uint32_t host, const struct cluster_request *request, uint64_t cookie);

/* Nothing goes from one host to the other until this time; `to` may be WORLD_Z. */
#define WORLD_Z UINT32_MAX
void world_cut(struct world *world, uint32_t from, uint32_t to, int64_t until_us);
/* The host does nothing until then; what arrives waits. */
void world_stop(struct world *world, uint32_t host, int64_t until_us);
/* What this host sends takes so much longer until then. */
void world_delay(struct world *world, uint32_t host, int64_t by_us, int64_t until_us);
void world_step_wall(struct world *world, uint32_t host, int64_t by_us);

struct world_counts {
    uint64_t messages[4]; /* by kind */
    uint64_t bytes;       /* of keys and contents */
    uint64_t removed;     /* hosts that z removed */
    uint64_t doubts;      /* times that more hosts than copies were lost at once */
};
void world_count(const struct world *world, struct world_counts *counts_r);

#endif
