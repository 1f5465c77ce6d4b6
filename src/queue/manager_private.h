/* manager_private: the state of a manager, shared by its parts. */
#ifndef STAMPD_QUEUE_MANAGER_PRIVATE_H
#define STAMPD_QUEUE_MANAGER_PRIVATE_H

#include "base/builder.h"
#include "base/arena.h"
#include "base/settings.h"
#include "base/stop.h"
#include "edge/http.h"
#include "queue/agenda.h"
#include "queue/manager.h"
#include "queue/latency_estimate.h"

enum { MANAGER_NAMESPACES = 128, NS_CODE_MAX = 16 };

struct json;

/* A namespace whose tasks are started; its number is its index in `namespaces`. */
struct queue_namespace {
    char code[NS_CODE_MAX + 1];
    bool is_ours;     /* false: it was once */
    bool is_scanning; /* a scan is in progress */
    bool was_cut;     /* the last scan returned as many tasks as it may: there are more */
    bool is_known;    /* the last scan returned all that starts soon, and nothing was dropped since */
    bool is_wanted;   /* a scan was requested while one was in progress */
    bool is_stopped;  /* by its administrator: its tasks wait, and are scanned for now and then */
    int failures;     /* consecutive requests that no worker answered: nothing is started meanwhile */
    int64_t scan_at_ms, scanned_ms; /* monotonic; scanned_ms: start of the last scan */
    int64_t rests_until_ms;         /* backoff after a failure */
};

struct manager {
    const struct settings *settings;
    struct arena *arena; /* of one iteration of the loop */
    struct agenda *agenda;
    struct latency_estimate latency_estimate;
    struct http *http;
    struct registry *registry; /* NULL: the settings list the namespaces */
    struct alert *alert;
    struct wakeups *wakeups;
    struct endpoint *endpoint;
    struct bytes key;
    struct builder key_body; /* {"key":…} */
    struct queue_namespace namespaces[MANAGER_NAMESPACES];
    int ns_count;
    int scans;                              /* in progress */
    struct queue_request *pending_requests; /* all requests in progress */
    bool is_suspended;
    uint64_t failed_requests; /* scans and runs that no worker answered */
    uint64_t overlooked;      /* tasks that only a scan has found, long after their start */
    int slots;                /* of all queues */
    enum stop stopping;
};

/* --- manager_namespaces.c --- */
/* Sets the namespaces that belong to this manager from now on. */
void manager_namespaces_set(struct manager *manager, const char *const *codes, size_t count);
/* The number of a namespace of this manager; -1: not one of them. */
int manager_namespaces_find(const struct manager *manager, struct bytes code);
/* Requests a scan as soon as possible. */
void manager_namespaces_want_scan(struct manager *manager, int ns);
/* A scan of a namespace that is due; or when the next one is. */
struct due_scan {
    int ns;
    int64_t before_ms; /* wall clock: asks for the tasks that start before */
    int64_t next_ms;   /* monotonic; INT64_MAX: after one of those in progress */
};
/* Begins the scan that is due first; false: none is. */
bool manager_namespaces_begin_scan(struct manager *manager, struct due_scan *scan_r);
/* No worker has answered: drops the tasks of the namespace and backs off for a while. */
void manager_namespaces_rest(struct manager *manager, int ns, const char *what,
                             const struct http_result *result);
/* The server runs no tasks of the namespace at present, and refuses with this code: they wait. */
void manager_namespaces_wait(struct manager *manager, int ns, struct bytes code);

#endif
