/* spaces: which namespaces are ours, and when each is scanned. */
#include "queue/manager_private.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "edge/crypto.h"

enum {
    SCANS_AT_ONCE = 2, /* the server has work to do besides */
    SCAN_GAP_MS = 100, /* between two scans of a namespace, however many are asked for */
    PAUSE_LEAST_MS = 250,
    PAUSE_MOST_MS = 15000,
    REFILL_BELOW = 2000, /* tasks waiting, after a scan that was cut */
};

int spaces_find(const struct manager *manager, struct bytes code)
{
    for (int i = 0; i < manager->space_count; i++)
        if (manager->spaces[i].is_ours && bytes_equal(bytes_of(manager->spaces[i].code), code))
            return i;
    return -1;
}

static struct space *find_or_add(struct manager *manager, const char *code)
{
    for (int i = 0; i < manager->space_count; i++)
        if (strcmp(manager->spaces[i].code, code) == 0)
            return &manager->spaces[i];
    if (manager->space_count == MANAGER_SPACES) {
        log_error("more than %d namespaces, %s is left out", MANAGER_SPACES, code);
        return NULL;
    }
    struct space *space = &manager->spaces[manager->space_count++];
    *space = (struct space){0};
    snprintf(space->code, sizeof space->code, "%s", code);
    return space;
}

static bool is_among(const char *code, const char *const *codes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(codes[i], code) == 0)
            return true;
    return false;
}

void spaces_set(struct manager *manager, const char *const *codes, size_t count)
{
    for (int i = 0; i < manager->space_count; i++) {
        struct space *space = &manager->spaces[i];
        if (space->is_ours && !is_among(space->code, codes, count)) {
            log_info("namespace=%s is no more of this manager", space->code);
            space->is_ours = false;
            agenda_drop_space(manager->agenda, i);
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct space *space = find_or_add(manager, codes[i]);
        if (!space || space->is_ours)
            continue;
        log_info("namespace=%s", space->code);
        space->is_ours = true;
        space->failures = 0;
        space->scan_at_ms = space->rests_until_ms = 0;
    }
}

/* --- scans --- */

void spaces_want_scan(struct manager *manager, int space)
{
    struct space *wanted = &manager->spaces[space];
    if (wanted->failures)
        return; /* it comes when the rest is over */
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
    const struct space *space = &manager->spaces[number];
    if (!space->is_ours || space->is_scanning)
        return INT64_MAX;
    int64_t refill_ms = space->scanned_ms + SCAN_GAP_MS;
    if (space->was_cut && !space->failures && refill_ms < space->scan_at_ms &&
        agenda_waiting(manager->agenda, number) < REFILL_BELOW)
        return refill_ms;
    return space->scan_at_ms;
}

static void begin(struct manager *manager, int number, int64_t now_ms)
{
    struct space *space = &manager->spaces[number];
    int64_t period_ms = manager->settings->task_hint_s * 1000;
    space->is_scanning = true;
    space->is_wanted = false;
    space->scanned_ms = now_ms;
    space->scan_at_ms = now_ms + period_ms;
    /* When there is more than can be told, what is due goes before what will be. */
    int64_t before_ms = clock_wall_ms() + (space->was_cut ? 0 : period_ms + period_ms / 4 + 1000);
    runner_scan(manager, number, before_ms);
}

int64_t spaces_scan_due(struct manager *manager)
{
    int64_t now_ms = clock_monotonic_ms();
    while (manager->scans < SCANS_AT_ONCE) {
        int first = -1;
        int64_t first_ms = INT64_MAX;
        for (int i = 0; i < manager->space_count; i++) {
            int64_t when_ms = when(manager, i);
            if (when_ms < first_ms) {
                first_ms = when_ms;
                first = i;
            }
        }
        if (first_ms > now_ms)
            return first_ms;
        begin(manager, first, now_ms); /* the one that waits longest */
    }
    return INT64_MAX;
}

/* --- rest --- */

/* Growing, and never twice the same, so that several managers do not come together. */
static int64_t pause_ms(int failures)
{
    int64_t pause = failures > 8 ? PAUSE_MOST_MS : PAUSE_LEAST_MS << (failures - 1);
    uint32_t random;
    crypto_random(&random, sizeof random);
    pause = pause < PAUSE_MOST_MS ? pause : PAUSE_MOST_MS;
    return pause / 2 + random % (uint32_t)pause;
}

void spaces_rest(struct manager *manager, int number, const char *what, const struct http_result *result)
{
    struct space *space = &manager->spaces[number];
    int64_t now_ms = clock_monotonic_ms();
    agenda_drop_space(manager->agenda, number);
    if (now_ms < space->rests_until_ms)
        return; /* several requests have met the same trouble */
    space->failures++;
    manager->failed_requests++;
    space->was_cut = false;
    space->scan_at_ms = space->rests_until_ms = now_ms + pause_ms(space->failures);
    log_warning("%s failed namespace=%s status=%d failures=%d again_ms=%lld%s%s", what, space->code,
                result->status, space->failures, (long long)(space->scan_at_ms - now_ms),
                *result->problem ? ": " : "", result->problem);
}
