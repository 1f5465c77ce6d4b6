/* lane: composes requests of the operation spool, and reads their answers. */
#include "forward/lane.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "edge/crypto/crypto.h"
#include "edge/json/json.h"

enum { FIRST_PAUSE_MS = 200, WORDS_MOST = 1000, JSON_DEPTH = 128, NS_MOST = 64 };

struct lane *lane_create(const char *ns, const struct forward_settings *settings)
{
    struct lane *lane = calloc(1, sizeof *lane);
    if (!lane || !(lane->ns = strdup(ns)) || asprintf(&lane->url, "%s/%s/op/spool", settings->url, ns) < 0)
        log_fatal("out of memory");
    lane->most = (size_t)settings->batch_records;
    return lane;
}

void lane_destroy(struct lane *lane)
{
    free(lane->ns);
    free(lane->url);
    free(lane->waiting);
    free(lane->stored);
    builder_free(&lane->body);
    builder_free(&lane->next_body);
    free(lane);
}

void lane_add(struct lane *lane, uint64_t sequence)
{
    if (lane->count == lane->capacity) {
        lane->capacity = lane->capacity ? 2 * lane->capacity : 64;
        lane->waiting = memory_grown(lane->waiting, lane->capacity, sizeof *lane->waiting, "lane");
    }
    lane->waiting[lane->count++] = sequence;
}

static void take_off(struct lane *lane, size_t at, size_t count)
{
    memmove(lane->waiting + at, lane->waiting + at + count,
            (lane->count - at - count) * sizeof *lane->waiting);
    lane->count -= count;
}

/* Behind all others: what cannot become a dead letter yet is not to hold them back. */
static void put_last(struct lane *lane, size_t at)
{
    uint64_t sequence = lane->waiting[at];
    take_off(lane, at, 1);
    lane_add(lane, sequence);
}

/* --- dead letters --- */

const char *lane_words(int error)
{
    return error == EBUSY       ? "another forwarder holds it"
           : error == ENOTSUP   ? "it has the format of an earlier version"
           : error == ETIMEDOUT ? "a process that does not run holds a lock of the spool"
                                : strerror(error);
}

static int bury(struct stampd_spool *spool, const struct stampd_spool_record *record, const char *reason)
{
    const struct stampd_spool_range range = {record->first, record->sequence};
    int error = stampd_spool_bury(spool, record, reason);
    if (!error)
        error = stampd_spool_acknowledge(spool, &range, 1);
    if (error) {
        log_often(LOG_LEVEL_ERROR, "dead letter", "cannot keep a dead letter number=%" PRIu64 ": %s",
                  record->sequence, lane_words(error));
        return error;
    }
    log_error("refused for good number=%" PRIu64 " namespace=%s: %s", record->sequence,
              record->request.ns ? record->request.ns : "?", reason);
    return 0;
}

/* Does the disk have no room, or does a process that is stopped hold a lock?  What was to be kept is tried
 * again later. */
static bool is_passing(int error)
{
    return error == ENOSPC || error == EDQUOT || error == ETIMEDOUT;
}

/* Of a record by its number; one that is gone was dropped. */
static int bury_number(struct stampd_spool *spool, uint64_t sequence, const char *reason)
{
    struct stampd_spool_record record;
    int error = stampd_spool_next(spool, sequence - 1, &record);
    if (error == EAGAIN || (!error && record.sequence != sequence))
        return 0;
    return error && error != EBADMSG ? error : bury(spool, &record, reason);
}

static void plan_again(struct lane *lane, const struct forward_settings *settings, int64_t least_s)
{
    uint32_t random;
    int64_t pause_ms = FIRST_PAUSE_MS, most_ms = settings->backoff_s * 1000;
    crypto_random(&random, sizeof random);
    for (int i = 0; i < lane->failures && pause_ms < most_ms; i++)
        pause_ms *= 2;
    pause_ms = pause_ms < most_ms ? pause_ms : most_ms;
    pause_ms = pause_ms / 2 + random % (pause_ms / 2 + 1);
    lane->failures++;
    lane->due_ms = clock_monotonic_ms() + (least_s * 1000 > pause_ms ? least_s * 1000 : pause_ms);
}

/* --- a batch --- */

static void lane_add_text(struct builder *body, const char *name, const char *text)
{
    if (!text)
        return;
    builder_printf(body, ",\"%s\":", name);
    json_add_string(body, bytes_of(text));
}

static void lane_add_record(struct builder *body, const struct stampd_spool_record *record)
{
    const struct stampd_spool_request *request = &record->request;
    char digest[CRYPTO_SHA256_HEX + 1];
    crypto_sha256_hex((struct bytes){record->body, record->body_size}, digest);
    builder_printf(body, "{\"n\":%" PRIu64 ",\"d\":\"%s\",\"task\":{\"priority\":%d", record->sequence,
                   digest, request->priority);
    lane_add_text(body, "op", request->operation);
    lane_add_text(body, "resource", request->resource);
    lane_add_text(body, "domain", request->domain);
    lane_add_text(body, "info", request->info);
    if (request->is_strict)
        builder_add_text(body, ",\"order\":\"strict\"");
    if (request->start)
        builder_printf(body, ",\"start\":%" PRId64, request->start);
    if (request->param) {
        builder_add_text(body, ",\"param\":");
        builder_add_bytes(body, (struct bytes){request->param, request->param_size});
    }
    builder_add_text(body, "}");
    lane_add_text(body, "traceparent", request->traceparent);
    lane_add_text(body, "tracestate", request->tracestate);
    builder_add_text(body, "}");
}

bool lane_is_namespace(const char *ns)
{
    return *ns && strlen(ns) < NS_MOST && strspn(ns, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(ns);
}

/* NULL: the server could read it. */
static const char *find_wrong(const struct stampd_spool_request *request)
{
    struct arena *arena = arena_create("param");
    struct json *root;
    const char *const texts[] = {request->operation, request->resource,    request->domain,
                                 request->info,      request->traceparent, request->tracestate};
    const char *wrong = lane_is_namespace(request->ns) ? NULL : "this cannot be the name of a namespace";
    if (request->param &&
        !json_is_tree(arena, (struct bytes){request->param, request->param_size}, JSON_DEPTH, 1, &root))
        wrong = "param is not JSON";
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (texts[i] && !bytes_is_utf8(bytes_of(texts[i])))
            wrong = "a text is not UTF-8";
    arena_destroy(arena);
    return wrong;
}

/* The first waiting record from number `at` of the lane on that can be sent; others are taken off, and those
 * whose dead letters cannot be kept at present are put last. */
static int find_record(struct lane *lane, size_t at, struct stampd_spool *spool,
                       struct stampd_spool_record *record)
{
    int passing = 0;
    for (size_t left = lane->count - at; left; left--) {
        uint64_t sequence = lane->waiting[at];
        int error = stampd_spool_next(spool, sequence - 1, record);
        bool is_gone = error == EAGAIN || (!error && record->sequence != sequence);
        const char *wrong = error == EBADMSG ? "the record is damaged"
                            : error          ? NULL
                                             : find_wrong(&record->request);
        if (!is_gone && wrong)
            error = passing ? passing : bury(spool, record, wrong);
        else if (!is_gone)
            return error;
        if (error && error != EAGAIN && !is_passing(error))
            return error;
        if (is_passing(error)) {
            put_last(lane, at);
            passing = error;
        } else {
            take_off(lane, at, 1);
        }
    }
    return passing ? passing : EAGAIN;
}

/* A batch of those from number `at` of the lane on. */
static int compose_lane(struct lane *lane, size_t at, struct stampd_spool *spool,
                        const struct forward_settings *settings, struct builder *body, size_t *count_r)
{
    struct stampd_spool_record record;
    unsigned char series[STAMPD_SPOOL_ID_BYTES];
    size_t count = 0;
    int error = 0;
    body->size = 0;
    while (count < lane->most && body->size < (size_t)settings->batch_bytes) {
        error = find_record(lane, at + count, spool, &record);
        if (error || (count && memcmp(series, record.series, sizeof series) != 0))
            break;
        if (!count) {
            memcpy(series, record.series, sizeof series);
            builder_add_text(body, "{\"param\":{\"series\":\"");
            for (size_t i = 0; i < sizeof series; i++)
                builder_printf(body, "%02x", series[i]);
            builder_add_text(body, "\",\"records\":[");
        } else {
            builder_add_text(body, ",");
        }
        lane_add_record(body, &record);
        count++;
    }
    builder_add_text(body, "]}}");
    *count_r = count;
    if (is_passing(error) && !count)
        plan_again(lane, settings, 0);
    return error == EAGAIN || is_passing(error) ? 0 : error;
}

int lane_compose(struct lane *lane, struct stampd_spool *spool, const struct forward_settings *settings)
{
    const struct builder body = lane->body;
    if (!lane->ready)
        return compose_lane(lane, 0, spool, settings, &lane->body, &lane->sent);
    lane->body = lane->next_body;
    lane->next_body = body;
    lane->sent = lane->ready;
    lane->ready = 0;
    return 0;
}

int lane_prepare(struct lane *lane, struct stampd_spool *spool, const struct forward_settings *settings)
{
    if (!lane->sent || lane->ready || lane->count - lane->sent < lane->most)
        return 0;
    return compose_lane(lane, lane->sent, spool, settings, &lane->next_body, &lane->ready);
}

/* --- an answer --- */

/* What was sent is still to be stored. */
static void take_back(struct lane *lane)
{
    lane->sent = 0;
    lane->ready = 0;
}

static const char *lane_text_of(struct arena *arena, const struct json *object, const char *name)
{
    const struct json *member = json_member(object, name);
    return member && member->kind == JSON_STRING ? arena_copy(arena, member->value.data, member->value.size)
                                                 : "";
}

/* The number of a record in the server's answer; 0: none. */
static uint64_t number_in(const struct json *one)
{
    const struct json *number = json_member(one, "n");
    int64_t sequence;
    return number && bytes_to_i64(number->text, &sequence) && sequence > 0 ? (uint64_t)sequence : 0;
}

/* Have as many records in a row been refused as may be?  Then the server, or the caller, is the reason rather
 * than these records: they wait for people. */
static bool is_at_fault(struct lane *lane, const struct forward_settings *settings)
{
    if (lane->dead < settings->dead_in_a_row)
        return false;
    log_often(LOG_LEVEL_ERROR, lane->url,
              "stops namespace=%s: %" PRId64
              " records in a row were refused for good; the others wait until one is stored",
              lane->ns, lane->dead);
    return true;
}

static size_t lane_place_of(const struct lane *lane, uint64_t sequence)
{
    size_t place = 0;
    while (place < lane->sent && lane->waiting[place] != sequence)
        place++;
    return place;
}

/* The records that the server has refused for good.  After an error, from `left_r` on they are no dead
 * letters; ECANCELED: there are too many in a row. */
static int bury_refused(struct lane *lane, struct stampd_spool *spool, struct arena *arena,
                        const struct json *refused, const struct forward_settings *settings,
                        const struct json **left_r)
{
    int error = 0;
    size_t behind = 0; /* the place behind the last dead letter: what lies between two was stored */
    for (const struct json *one = refused->first; one && !error; one = one->next) {
        uint64_t sequence = number_in(one);
        size_t place = lane_place_of(lane, sequence);
        *left_r = one;
        if (!sequence)
            continue;
        if (place > behind)
            lane->dead = 0;
        behind = place + 1;
        if (is_at_fault(lane, settings))
            return ECANCELED;
        const char *code = lane_text_of(arena, one, "code");
        error = bury_number(spool, sequence,
                            arena_printf(arena, "%s: %s", code, lane_text_of(arena, one, "message")));
        if (!error && strcmp(code, "DIVERGED") == 0) {
            log_error("the spool is a copy of another one, and both have gone on; it gets a new series "
                      "namespace=%s",
                      lane->ns);
            error = stampd_spool_renew(spool);
        }
        lane->dead += !error;
    }
    if (!error && behind < lane->sent)
        lane->dead = 0;
    return error;
}

/* Has the server stored a record of the batch, wherever it stands?  Then it is not the server that is at
 * fault. */
static bool is_any_stored(const struct lane *lane, const struct json *refused)
{
    size_t count = 0;
    for (const struct json *one = refused->first; one; one = one->next)
        count += lane_place_of(lane, number_in(one)) < lane->sent;
    return count < lane->sent;
}

static bool lane_is_among(const struct json *list, uint64_t sequence)
{
    while (list && number_in(list) != sequence)
        list = list->next;
    return list != NULL;
}

/* What was sent is stored, but for `refused` and what follows it, which waits again; `is_last`: behind all
 * others, else at its place. */
static void add_stored(struct lane *lane, const struct json *refused, bool is_last)
{
    size_t waits = 0;
    size_t needed = lane->stored_count + lane->sent;
    if (needed > lane->stored_capacity) {
        lane->stored = memory_grown(lane->stored, needed, sizeof *lane->stored, "lane");
        lane->stored_capacity = needed;
    }
    for (size_t i = 0; i < lane->sent; i++) {
        uint64_t sequence = lane->waiting[i];
        if (refused && lane_is_among(refused, sequence))
            lane->waiting[waits++] = sequence;
        else
            lane->stored[lane->stored_count++] = (struct stampd_spool_range){sequence, sequence};
    }
    take_off(lane, waits, lane->sent - waits);
    lane->sent = 0;
    while (is_last && waits--)
        put_last(lane, 0);
}

bool lane_note_stored(struct lane *lane, struct stampd_spool *spool, const struct forward_settings *settings)
{
    if (!lane->stored_count || (lane->is_unnoted && lane->due_ms > clock_monotonic_ms()))
        return true;
    int error = stampd_spool_acknowledge(spool, lane->stored, lane->stored_count);
    lane->is_unnoted = error != 0;
    if (error) {
        log_error("cannot note what the server has stored namespace=%s: %s", lane->ns, lane_words(error));
        plan_again(lane, settings, 0);
        return false;
    }
    lane->stored_count = 0;
    lane->failures = 0;
    return true;
}

/* False: it is not the answer of the operation. */
static bool settle_done(struct lane *lane, struct stampd_spool *spool, struct arena *arena,
                        const struct json *out, const struct forward_settings *settings)
{
    const struct json *refused = json_member(out, "refused");
    if (!refused || refused->kind != JSON_ARRAY || !json_member(out, "stored"))
        return false;
    const struct json *left = NULL;
    int error = bury_refused(lane, spool, arena, refused, settings, &left);
    if (error == ECANCELED && is_any_stored(lane, refused))
        lane->dead = 0; /* those that wait are judged again */
    add_stored(lane, error ? left : NULL, error != ECANCELED);
    if (error) { /* a full disk gets room when what is stored is removed */
        lane->ready = 0;
        plan_again(lane, settings, 0);
        return true;
    }
    lane->failures = lane->is_unnoted ? lane->failures : 0;
    lane->most =
        lane->most * 2 < (size_t)settings->batch_records ? lane->most * 2 : (size_t)settings->batch_records;
    return true;
}

/* Of a whole batch: a smaller one is tried, down to the record that is at fault. */
static void settle_refused(struct lane *lane, struct stampd_spool *spool,
                           const struct forward_settings *settings, const char *reason)
{
    if (lane->sent > 1) {
        lane->most = lane->sent / 2;
        take_back(lane);
        return;
    }
    if (is_at_fault(lane, settings)) {
        take_back(lane);
        plan_again(lane, settings, 0);
        return;
    }
    int error = bury_number(spool, lane->waiting[0], reason);
    take_back(lane);
    lane->dead += !error;
    if (error) {
        put_last(lane, 0);
        plan_again(lane, settings, 0);
        return;
    }
    take_off(lane, 0, 1);
}

void lane_settle(struct lane *lane, struct stampd_spool *spool, const struct forward_settings *settings,
                 const struct http_result *result)
{
    static const struct json_limits limits = {.depth = JSON_DEPTH, .tree_depth = 6};
    struct arena *arena = arena_create("answer");
    struct json_problem problem = {0};
    struct json *root = NULL;
    if (!result->status || json_read(arena, result->body, &limits, &root, &problem))
        root = NULL;
    const char *code = lane_text_of(arena, root, "code"), *message = lane_text_of(arena, root, "message");
    const char *words = *message ? message : lane_text_of(arena, root, "title");
    bool has_waited = lane->failures > 0;
    bool is_done =
        result->status == 200 && settle_done(lane, spool, arena, json_member(root, "out"), settings);
    if (is_done && has_waited)
        log_info("is served again namespace=%s", lane->ns);
    bool is_refused = !is_done && result->status &&
                      (result->status == 413 || (*code && fault_remedy_of_code(code) == REMEDY_FINAL));
    if (is_refused) {
        settle_refused(lane, spool, settings,
                       arena_printf(arena, "%s: %s", *code ? code : "HTTP 413", words));
    } else if (!is_done) {
        log_often(LOG_LEVEL_WARNING, lane->ns, "waits namespace=%s number=%" PRIu64 " status=%d code=%s: %s",
                  lane->ns, lane->waiting[0], result->status, code, result->status ? words : result->problem);
        bool may_be_one = strcmp(code, "XBUSY") == 0 || *code == 'B'; /* those before it need not wait */
        if (may_be_one && lane->sent > 1)
            lane->most = lane->sent / 2;
        take_back(lane);
        plan_again(lane, settings, result->retry_after_s);
    }
    arena_destroy(arena);
}
