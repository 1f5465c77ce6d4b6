/* manager_namespaces: the namespaces of this manager, and the schedule of their scans. */
#include "queue/manager_private.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "edge/crypto/crypto.h"

enum {
    SCANS_AT_ONCE = 2, /* the server has other work too */
    SCAN_GAP_MS = 100, /* between two scans of a namespace, however many are requested */
    PAUSE_LEAST_MS = 250,
    PAUSE_MOST_MS = 15000,
    PAUSE_LONGEST = 9,   /* failures, after which the pause grows no more */
    REFILL_BELOW = 2000, /* waiting tasks, after a truncated scan */
};

int manager_namespaces_find(const struct manager *manager, struct bytes code)
{
    for (int i = 0; i < manager->ns_count; i++)
        if (manager->namespaces[i].is_ours && bytes_equal(bytes_of(manager->namespaces[i].code), code))
            return i;
    return -1;
}

static struct queue_namespace *find_or_add(struct manager *manager, const char *code)
{
    for (int i = 0; i < manager->ns_count; i++)
        if (strcmp(manager->namespaces[i].code, code) == 0)
            return &manager->namespaces[i];
    if (manager->ns_count == MANAGER_NAMESPACES) {
        log_error("more than %d namespaces, ignoring %s", MANAGER_NAMESPACES, code);
        return NULL;
    }
    struct queue_namespace *ns = &manager->namespaces[manager->ns_count++];
    *ns = (struct queue_namespace){0};
    snprintf(ns->code, sizeof ns->code, "%s", code);
    return ns;
}

static bool manager_namespaces_is_among(const char *code, const char *const *codes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(codes[i], code) == 0)
            return true;
    return false;
}

void manager_namespaces_set(struct manager *manager, const char *const *codes, size_t count)
{
    for (int i = 0; i < manager->ns_count; i++) {
        struct queue_namespace *ns = &manager->namespaces[i];
        if (ns->is_ours && !manager_namespaces_is_among(ns->code, codes, count)) {
            log_info("namespace=%s released", ns->code);
            ns->is_ours = false;
            agenda_drop_ns(manager->agenda, i);
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct queue_namespace *ns = find_or_add(manager, codes[i]);
        if (!ns || ns->is_ours)
            continue;
        log_info("namespace=%s", ns->code);
        ns->is_ours = true;
        ns->failures = 0;
        ns->is_known = false;
        ns->scan_at_ms = ns->rests_until_ms = 0;
    }
}

/* --- scans --- */

void manager_namespaces_want_scan(struct manager *manager, int ns)
{
    struct queue_namespace *wanted = &manager->namespaces[ns];
    if (wanted->failures)
        return; /* it is scanned after the backoff */
    if (wanted->is_scanning) {
        wanted->is_wanted = true;
        return;
    }
    int64_t soonest_ms = wanted->scanned_ms + SCAN_GAP_MS;
    if (wanted->scan_at_ms > soonest_ms)
        wanted->scan_at_ms = soonest_ms;
}

static int64_t when(const struct manager *manager, int number)
{
    const struct queue_namespace *ns = &manager->namespaces[number];
    if (!ns->is_ours || ns->is_scanning)
        return INT64_MAX;
    int64_t refill_ms = ns->scanned_ms + SCAN_GAP_MS;
    if (ns->was_cut && !ns->failures && refill_ms < ns->scan_at_ms &&
        agenda_waiting(manager->agenda, number) < REFILL_BELOW)
        return refill_ms;
    return ns->scan_at_ms;
}

/* Returns up to which start, by the wall clock, the scan asks for tasks. */
static int64_t manager_namespaces_begin(struct manager *manager, int number, int64_t now_ms)
{
    struct queue_namespace *ns = &manager->namespaces[number];
    int64_t period_ms = manager->settings->task_wakeup_s * 1000;
    ns->is_scanning = true;
    ns->is_wanted = false;
    ns->scanned_ms = now_ms;
    ns->scan_at_ms = now_ms + period_ms;
    /* If one scan cannot return all tasks, those due go before those due later. */
    return clock_wall_ms() + (ns->was_cut ? 0 : period_ms + period_ms / 4 + 1000);
}

bool manager_namespaces_begin_scan(struct manager *manager, struct due_scan *scan_r)
{
    int64_t now_ms = clock_monotonic_ms(), first_ms = INT64_MAX;
    for (int i = 0; manager->scans < SCANS_AT_ONCE && i < manager->ns_count; i++) {
        int64_t when_ms = when(manager, i);
        if (when_ms < first_ms) { /* the one waiting longest */
            first_ms = when_ms;
            scan_r->ns = i;
        }
    }
    scan_r->next_ms = first_ms;
    if (first_ms > now_ms)
        return false;
    scan_r->before_ms = manager_namespaces_begin(manager, scan_r->ns, now_ms);
    return true;
}

/* --- backoff --- */

/* Growing and random, so that several managers do not retry together. */
static int64_t pause_ms(int failures)
{
    int64_t pause = failures >= PAUSE_LONGEST ? PAUSE_MOST_MS : PAUSE_LEAST_MS << (failures - 1);
    uint32_t random;
    crypto_random(&random, sizeof random);
    pause = pause < PAUSE_MOST_MS ? pause : PAUSE_MOST_MS;
    return pause / 2 + random % (uint32_t)pause;
}

/* The administrator has stopped it: no failure.  A wake-up ends the wait. */
void manager_namespaces_wait(struct manager *manager, int number, struct bytes code)
{
    struct queue_namespace *ns = &manager->namespaces[number];
    int64_t period_ms = manager->settings->task_wakeup_s * 1000, longest_ms = pause_ms(PAUSE_LONGEST);
    agenda_drop_ns(manager->agenda, number);
    ns->failures = 0;
    ns->was_cut = ns->is_known = false;
    ns->scan_at_ms = clock_monotonic_ms() + (period_ms < longest_ms ? period_ms : longest_ms);
    if (!ns->is_stopped)
        log_info("namespace=%s runs no tasks code=%.*s: they wait", ns->code, (int)code.size, code.data);
    ns->is_stopped = true;
}

void manager_namespaces_rest(struct manager *manager, int number, const char *what,
                             const struct http_result *result)
{
    struct queue_namespace *ns = &manager->namespaces[number];
    int64_t now_ms = clock_monotonic_ms();
    agenda_drop_ns(manager->agenda, number);
    if (now_ms < ns->rests_until_ms)
        return; /* several requests have failed for the same reason */
    ns->failures++;
    manager->failed_requests++;
    ns->was_cut = ns->is_known = false;
    ns->scan_at_ms = ns->rests_until_ms = now_ms + pause_ms(ns->failures);
    log_warning("%s failed namespace=%s status=%d failures=%d again_ms=%lld%s%s", what, ns->code,
                result->status, ns->failures, (long long)(ns->scan_at_ms - now_ms),
                *result->problem ? ": " : "", result->problem);
}
