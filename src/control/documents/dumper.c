/* dumper: one request for names, batches of documents in flight, and the writer of their lines. */
#include "control/documents/dumper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/stop.h"
#include "control/answer.h"
#include "control/backoff.h"
#include "control/message.h"
#include "control/documents/progress.h"
#include "control/documents/target.h"
#include "edge/json/json.h"

enum {
    BATCH_MOST = 32,       /* documents of one `get` at tolerance 0 */
    BATCH_BYTES = 8 << 20, /* about this many bytes of them */
    NAMES_A_PAGE = 1000,
    REQUEST_MS = 300 * 1000,
    REPORT_EVERY_MS = 5000,
    WAIT_MS = 100, /* between two checks for signals */
    KEEP_BYTES = 1 << 20,
};

enum state { STATE_FREE, STATE_WAITS, STATE_SENT, STATE_DONE };

/* One request, which may be sent several times. */
struct dump_request {
    enum state state;
    const char *url;
    struct builder body;
    struct backoff backoff;
};

/* Documents that are requested in sequence, `part` at once. */
struct dump_batch {
    struct dump_request pending;
    struct page_name names[BATCH_MOST];
    size_t count, done, part; /* the first `done` have arrived, `part` are requested */
    struct arena *arena;      /* of the names */
    struct builder lines;     /* arrived, not yet written */
};

/* How far the names are listed. */
struct lister {
    struct dump_request pending;
    struct arena *class_arena, *name_arena;
    struct bytes *classes;
    size_t class_count, class_next;
    struct bytes class; /* whose names are listed; NO_BYTES: classes are */
    struct bytes class_cursor, name_cursor;
    struct page_name *names;
    size_t name_count, name_next;
    bool is_ended;
};

struct dumper {
    const struct dumper_options *options;
    struct http *http;
    struct lister lister;
    struct dump_batch *batches; /* a ring: a batch is at its number's remainder */
    uint64_t oldest, youngest;  /* numbers: not yet fully written, not yet begun */
    size_t batch_size;
    struct arena *arena; /* of an answer */
    struct builder last; /* the last name written */
    bool is_closed;      /* the output accepts no more */
    bool is_abandoned;   /* does not even wait for requests in flight */
    bool is_answered;    /* the server has answered once */
    int64_t reported_ms;
    struct progress progress;
    struct dumper_report *report;
};

static bool is_stopping(const struct dumper *dumper)
{
    return dumper->report->is_failed || dumper->report->is_interrupted;
}

static void dumper_fail(struct dumper *dumper, const char *what, const char *why)
{
    progress_clear(&dumper->progress);
    if (!dumper->report->is_failed)
        message_print("%s%s%s", what, *what ? ": " : "", why);
    dumper->report->is_failed = true;
}

/* --- requests --- */

static void begin_body(const struct dumper *dumper, struct dump_request *pending)
{
    builder_clear(&pending->body, KEEP_BYTES);
    target_begin_body(&pending->body, dumper->options->key);
}

static void end_body(struct dump_request *pending)
{
    builder_add_text(&pending->body, "}}");
    pending->backoff = (struct backoff){0};
    pending->state = STATE_WAITS;
}

static void request_classes(struct dumper *dumper)
{
    struct lister *lister = &dumper->lister;
    begin_body(dumper, &lister->pending);
    builder_printf(&lister->pending.body, "\"limit\":%d", NAMES_A_PAGE);
    json_add_member(&lister->pending.body, "cursor", lister->class_cursor);
    end_body(&lister->pending);
}

static void request_names(struct dumper *dumper)
{
    struct lister *lister = &dumper->lister;
    struct builder *body = &lister->pending.body;
    begin_body(dumper, &lister->pending);
    builder_printf(body, "\"limit\":%d,\"after\":%lld", NAMES_A_PAGE, (long long)dumper->options->after);
    json_add_member(body, "c", lister->class);
    json_add_member(body, "prefix", dumper->options->prefix);
    json_add_member(body, "cursor", lister->name_cursor);
    end_body(&lister->pending);
}

static void request_documents(struct dumper *dumper, struct dump_batch *batch)
{
    struct builder *body = &batch->pending.body;
    begin_body(dumper, &batch->pending);
    builder_add_text(body, "\"docs\":[");
    for (size_t i = batch->done; i < batch->done + batch->part; i++) {
        json_add_text(body, "{\"c\":", batch->names[i].class);
        json_add_member(body, "id", batch->names[i].id);
        if (i + 1 < batch->done + batch->part)
            builder_add_text(body, "},");
    }
    builder_add_text(body, "}]");
    end_body(&batch->pending);
}

/* --- the next names --- */

/* Takes the next wanted class; false: none is left in the page. */
static bool choose_class(struct dumper *dumper)
{
    struct lister *lister = &dumper->lister;
    const struct page_name *start = &dumper->options->start;
    while (lister->class_next < lister->class_count) {
        struct bytes class = lister->classes[lister->class_next++];
        int order = start->class.data ? bytes_compare(class, start->class) : 1;
        if (order < 0)
            continue;
        lister->class = class;
        lister->name_cursor = order == 0 ? start->id : NO_BYTES;
        return true;
    }
    return false;
}

static void find_names(struct dumper *dumper)
{
    struct lister *lister = &dumper->lister;
    if (lister->pending.state != STATE_FREE || lister->name_next < lister->name_count || lister->is_ended)
        return;
    if (lister->class.data || choose_class(dumper))
        request_names(dumper);
    else if (!lister->classes || lister->class_cursor.data)
        request_classes(dumper);
    else
        lister->is_ended = true;
}

static bool take_classes(struct dumper *dumper, struct bytes answer)
{
    struct lister *lister = &dumper->lister;
    arena_reset(lister->class_arena);
    answer.data = arena_copy(lister->class_arena, answer.data, answer.size);
    lister->class_next = 0;
    return page_read_classes(lister->class_arena, answer, &lister->classes, &lister->class_count,
                             &lister->class_cursor);
}

static bool take_names(struct dumper *dumper, struct bytes answer)
{
    struct lister *lister = &dumper->lister;
    arena_reset(lister->name_arena);
    answer.data = arena_copy(lister->name_arena, answer.data, answer.size);
    lister->name_next = 0;
    bool is_read = page_read_names(lister->name_arena, answer, &lister->names, &lister->name_count,
                                   &lister->name_cursor);
    if (!lister->name_cursor.data)
        lister->class = NO_BYTES; /* all of it is listed */
    return is_read;
}

/* --- batches --- */

static struct dump_batch *batch_of(struct dumper *dumper, uint64_t number)
{
    return &dumper->batches[number % (uint64_t)dumper->options->parallel];
}

/* Begins as many batches as there are names and free batches. */
static void fill_batches(struct dumper *dumper)
{
    struct lister *lister = &dumper->lister;
    while (lister->name_next < lister->name_count &&
           dumper->youngest - dumper->oldest < (uint64_t)dumper->options->parallel) {
        struct dump_batch *batch = batch_of(dumper, dumper->youngest++);
        assert(batch->pending.state == STATE_FREE && !batch->lines.size);
        arena_reset(batch->arena);
        batch->count = batch->done = 0;
        while (lister->name_next < lister->name_count && batch->count < dumper->batch_size) {
            const struct page_name *name = &lister->names[lister->name_next++];
            batch->names[batch->count++] = (struct page_name){
                arena_keep(batch->arena, name->class), arena_keep(batch->arena, name->id), name->version};
        }
        batch->part = batch->count;
        request_documents(dumper, batch);
    }
}

/* Later batches are sized by the last answer. */
static void learn_size(struct dumper *dumper, size_t documents, size_t bytes)
{
    size_t size = BATCH_BYTES / (bytes / documents + 1);
    dumper->batch_size = size < 1 ? 1 : size < BATCH_MOST ? size : BATCH_MOST;
}

static bool take_documents(struct dumper *dumper, struct dump_batch *batch, struct bytes answer)
{
    size_t written;
    if (!page_read_documents(dumper->arena, answer, batch->part, &batch->lines, &written))
        return false;
    learn_size(dumper, batch->part, answer.size);
    dumper->report->documents += (int64_t)written;
    batch->done += batch->part;
    batch->pending.state = STATE_DONE;
    if (batch->done < batch->count) {
        if (batch->part > batch->count - batch->done)
            batch->part = batch->count - batch->done;
        request_documents(dumper, batch);
    }
    return true;
}

/* Too many documents at once: half of them. */
static bool halve(struct dumper *dumper, struct dump_request *pending)
{
    struct dump_batch *batch = (struct dump_batch *)pending;
    if (pending == &dumper->lister.pending || batch->part < 2)
        return false;
    batch->part = dumper->batch_size = (batch->part + 1) / 2;
    request_documents(dumper, batch);
    return true;
}

/* --- answers --- */

static const char *dumper_explain(struct dumper *dumper, const struct server_answer *answer)
{
    return arena_printf(dumper->arena, "%s%s%s", answer->code, *answer->code ? " " : "", answer->words);
}

/* The single document that the pending request is about, if there is one. */
static const char *subject(struct dumper *dumper, const struct dump_request *pending)
{
    const struct dump_batch *batch = (const struct dump_batch *)pending;
    if (pending == &dumper->lister.pending || batch->part != 1)
        return "";
    const struct page_name *name = &batch->names[batch->done];
    return arena_printf(dumper->arena, "%s.%s", name->class.data, name->id.data);
}

static void on_again(struct dumper *dumper, struct dump_request *pending, const struct server_answer *answer)
{
    int64_t now_ms = clock_monotonic_ms();
    pending->state = STATE_WAITS;
    if (!backoff_goes_on(&pending->backoff, dumper->options->retry_s)) {
        dumper_fail(dumper, "", dumper_explain(dumper, answer));
    } else if (pending->backoff.tries > 1 && now_ms - dumper->reported_ms > REPORT_EVERY_MS) {
        dumper->reported_ms = now_ms;
        progress_clear(&dumper->progress);
        message_print("%s; retrying", dumper_explain(dumper, answer));
    }
}

static void take_answer(struct dumper *dumper, struct dump_request *pending, struct bytes answer)
{
    struct lister *lister = &dumper->lister;
    bool is_read;
    pending->state = STATE_FREE;
    if (pending != &lister->pending)
        is_read = take_documents(dumper, (struct dump_batch *)pending, answer);
    else if (lister->class.data)
        is_read = take_names(dumper, answer);
    else
        is_read = take_classes(dumper, answer);
    if (!is_read)
        dumper_fail(dumper, "", "this is no answer of stampd");
}

static void on_result(struct dumper *dumper, const struct http_result *result)
{
    struct dump_request *pending = result->owner;
    struct server_answer answer;
    enum answer_kind kind = answer_read(dumper->arena, result, &answer);
    if (!result->status && !dumper->is_answered)
        kind = ANSWER_HOPELESS; /* a wrong address, a certificate that is not trusted */
    dumper->is_answered = dumper->is_answered || result->status;
    pending->state = STATE_WAITS;
    if (kind == ANSWER_DONE)
        take_answer(dumper, pending, result->body);
    else if ((result->is_too_large || kind == ANSWER_REFUSED) && halve(dumper, pending))
        ;
    else if (result->is_too_large)
        dumper_fail(dumper, subject(dumper, pending), "larger than what is taken as an answer");
    else if (kind == ANSWER_AGAIN)
        on_again(dumper, pending, &answer);
    else
        dumper_fail(dumper, subject(dumper, pending), dumper_explain(dumper, &answer));
    arena_reset(dumper->arena);
}

/* --- writing --- */

static void note_last(struct dumper *dumper, const struct page_name *name)
{
    dumper->last.size = 0;
    builder_add_bytes(&dumper->last, name->class);
    builder_add_text(&dumper->last, ".");
    builder_add_bytes(&dumper->last, name->id);
}

/* Writes the documents of the oldest batches that have arrived. */
static void write_lines(struct dumper *dumper)
{
    while (dumper->oldest < dumper->youngest && !dumper->is_closed) {
        struct dump_batch *batch = batch_of(dumper, dumper->oldest);
        if (!bytes_write(dumper->options->output, builder_bytes(&batch->lines))) {
            dumper_fail(dumper, dumper->options->output_name, strerror(errno));
            dumper->is_closed = true;
            return;
        }
        builder_clear(&batch->lines, KEEP_BYTES);
        if (batch->done)
            note_last(dumper, &batch->names[batch->done - 1]);
        if (batch->pending.state != STATE_DONE)
            return;
        batch->pending.state = STATE_FREE;
        dumper->oldest++;
    }
}

/* --- the whole --- */

/* Sends the pending request when it is due; returns how long to wait for one that is not. */
static int64_t send_when_due(struct dumper *dumper, struct dump_request *pending)
{
    int64_t left_ms = pending->backoff.due_ms - clock_monotonic_ms();
    if (pending->state != STATE_WAITS || left_ms > 0)
        return pending->state == STATE_WAITS && left_ms < WAIT_MS ? left_ms : WAIT_MS;
    pending->state = STATE_SENT;
    http_send(dumper->http, &(struct http_request){.method = "POST",
                                                   .url = pending->url,
                                                   .content_type = "application/json",
                                                   .body = builder_bytes(&pending->body),
                                                   .timeout_ms = REQUEST_MS,
                                                   .owner = pending});
    return WAIT_MS;
}

static int64_t send_all_due(struct dumper *dumper)
{
    int64_t wait_ms = send_when_due(dumper, &dumper->lister.pending);
    for (uint64_t number = dumper->oldest; number < dumper->youngest; number++) {
        int64_t left_ms = send_when_due(dumper, &batch_of(dumper, number)->pending);
        wait_ms = left_ms < wait_ms ? left_ms : wait_ms;
    }
    return wait_ms;
}

static bool is_waiting(const struct dumper *dumper)
{
    return dumper->lister.pending.state == STATE_WAITS || dumper->oldest < dumper->youngest;
}

/* False when no work is left. */
static bool step(struct dumper *dumper)
{
    int64_t wait_ms = WAIT_MS;
    if (!is_stopping(dumper)) {
        fill_batches(dumper);
        find_names(dumper);
        wait_ms = send_all_due(dumper);
    }
    struct http_result result;
    if (http_receive(dumper->http, wait_ms, &result))
        on_result(dumper, &result);
    else if (!http_in_flight(dumper->http) && is_stopping(dumper))
        return false;
    else if (!http_in_flight(dumper->http) && is_waiting(dumper))
        clock_sleep_ms(wait_ms);
    write_lines(dumper);
    return !dumper->lister.is_ended || dumper->oldest < dumper->youngest;
}

static void open_all(struct dumper *dumper)
{
    const struct dumper_options *options = dumper->options;
    struct http_options http = options->http;
    http.parallel = (int)options->parallel + 1; /* names are requested beside the documents */
    dumper->http = http_open(&http);
    dumper->batches = memory_zeroed((size_t)options->parallel, sizeof *dumper->batches, "dump");
    for (int64_t i = 0; i < options->parallel; i++) {
        dumper->batches[i].pending.url = options->get_url;
        dumper->batches[i].arena = arena_create("batch");
    }
    struct lister *lister = &dumper->lister;
    *lister = (struct lister){.pending.url = options->list_url,
                              .class_arena = arena_create("classes"),
                              .name_arena = arena_create("names")};
    if (options->class.data) {
        lister->classes = arena_alloc(lister->class_arena, sizeof *lister->classes);
        lister->classes[0] = options->class;
        lister->class_count = 1;
    }
    stop_open();
    progress_start(&dumper->progress, 0, 0);
}

static void close_all(struct dumper *dumper)
{
    http_close(dumper->http);
    for (int64_t i = 0; i < dumper->options->parallel; i++) {
        arena_destroy(dumper->batches[i].arena);
        builder_free(&dumper->batches[i].pending.body);
        builder_free(&dumper->batches[i].lines);
    }
    free(dumper->batches);
    builder_free(&dumper->lister.pending.body);
    arena_destroy(dumper->lister.class_arena);
    arena_destroy(dumper->lister.name_arena);
    builder_free(&dumper->last);
    arena_destroy(dumper->arena);
}

void dumper_run(const struct dumper_options *options, struct arena *arena, struct dumper_report *report_r)
{
    struct dumper dumper = {
        .options = options, .batch_size = BATCH_MOST, .arena = arena_create("answer"), .report = report_r};
    *report_r = (struct dumper_report){0};
    open_all(&dumper);
    while (!dumper.is_abandoned && step(&dumper)) {
        stop_heed(&dumper.report->is_interrupted, &dumper.is_abandoned);
        progress_show(&dumper.progress, report_r->documents, 0);
    }
    progress_clear(&dumper.progress);
    if (dumper.last.size)
        report_r->last = arena_copy(arena, dumper.last.data, dumper.last.size);
    close_all(&dumper);
}
