/* manager_private: a manager from the inside. */
#ifndef STAMPD_QUEUE_MANAGER_PRIVATE_H
#define STAMPD_QUEUE_MANAGER_PRIVATE_H

#include "base/arena.h"
#include "base/settings.h"
#include "base/stop.h"
#include "edge/http.h"
#include "queue/agenda.h"
#include "queue/manager.h"
#include "queue/latency_estimate.h"

enum { MANAGER_NAMESPACES = 128, NS_CODE_MAX = 16 };

struct json;

/* A namespace whose tasks are started; its number is its place among all. */
struct ns {
    char code[NS_CODE_MAX + 1];
    bool is_ours;     /* else: it was once */
    bool is_scanning; /* the answer to a scan is awaited */
    bool was_cut;     /* the last scan told of as many tasks as it may: there are more */
    bool is_wanted;   /* a scan was asked for while one was under way */
    int failures;     /* in a row, of requests that no worker answered: nothing is started meanwhile */
    int64_t scan_at_ms, scanned_ms; /* monotonic; scanned_ms: the begin of the last scan */
    int64_t rests_until_ms;         /* after a failure */
};

struct manager {
    const struct settings *settings;
    struct arena *arena; /* of one turn */
    struct agenda *agenda;
    struct latency_estimate latency_estimate;
    struct http *http;
    struct registry *registry; /* NULL: the namespaces are those of the settings */
    struct alert *alert;
    struct wakeups *wakeups;
    struct endpoint *endpoint;
    struct bytes key;
    struct builder key_body; /* {"key":…} */
    struct ns namespaces[MANAGER_NAMESPACES];
    int ns_count;
    int scans;                        /* under way */
    struct pending *pending_requests; /* all requests under way */
    bool is_suspended;
    uint64_t failed_requests; /* scans and runs that no worker answered */
    int places;               /* of all queues */
    enum stop stopping;
};

/* --- spaces.c --- */
/* The namespaces that are ours from now on. */
void manager_namespaces_set(struct manager *manager, const char *const *codes, size_t count);
/* The number of one of ours; -1: it is none. */
int manager_namespaces_find(const struct manager *manager, struct bytes code);
/* A scan as soon as may be. */
void manager_namespaces_want_scan(struct manager *manager, int ns);
/* Begins the scans that are due; returns when the next one is, on the monotonic clock. */
int64_t manager_namespaces_scan_due(struct manager *manager);
/* No worker has answered: what is known of the namespace is forgotten, and it rests for a while. */
void manager_namespaces_rest(struct manager *manager, int ns, const char *what,
                             const struct http_result *result);

/* --- runner.c --- */
/* Starts what is due and has a place. */
void runner_start_due(struct manager *manager);
/* Will the task end soon, by what was seen of its operation? */
bool runner_is_quick(void *manager, const struct agenda_task *task);
void runner_scan(struct manager *manager, int ns, int64_t before_ms);
/* Takes the end of a request or mail. */
void runner_end(struct manager *manager, const struct http_result *result);
/* Forgets the requests under way; the client has gone. */
void runner_drop_all(struct manager *manager);
/* A task as the server tells of it, a row of `due` (doc/tasks.md); false: it is none. */
bool runner_read_row(int ns, const struct json *row, struct agenda_entry *entry_r);

#endif
