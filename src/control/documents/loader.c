/* loader: batches in flight, their answers, and which lines are done. */
#include "control/documents/loader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "control/answer.h"
#include "control/documents/line.h"
#include "control/backoff.h"
#include "control/message.h"
#include "control/documents/progress.h"

enum {
    REQUEST_MS = 300 * 1000,
    SAVE_EVERY_MS = 1000,
    REPORT_EVERY_MS = 5000,
    WAIT_MS = 100, /* between two checks for signals */
};

struct load_position {
    int64_t line, offset;
};

struct load_entry {
    size_t start, size; /* in the batch's body */
    uint64_t name;
    int64_t line;
};

struct load_batch {
    enum batch_state { BATCH_FREE, BATCH_WAITS, BATCH_SENT } state;
    struct builder body;  /* the whole request */
    struct builder alone; /* the request with one document, after a refusal */
    struct load_entry entries[LOADER_BATCH_MAX];
    int count;
    int single;                  /* the document sent alone; -1: all of them together */
    struct load_position before; /* where its first line begins */
    struct backoff backoff;
};

struct loader {
    const struct loader_options *options;
    struct input *input;
    struct http *http;
    struct load_batch *batches;
    struct arena *arena; /* of one line */
    struct {
        bool is_there;
        struct builder text;
        struct load_position before;
        uint64_t name;
        int64_t line;
    } held;                     /* a line that is read but in no batch yet */
    struct load_position stuck; /* input has failed or was interrupted: reads nothing beyond */
    bool is_ended;              /* no more lines are wanted */
    bool is_abandoned;          /* does not even wait for requests in flight */
    bool is_answered;           /* the server has answered once */
    int64_t start_line;
    int64_t saved_ms, reported_ms;
    struct progress progress;
    struct loader_report *report;
};

/* --- progress --- */

static struct load_position done_with(const struct loader *loader)
{
    struct load_position position = {loader->input->line, loader->input->offset};
    if (loader->stuck.line >= 0)
        position = loader->stuck;
    if (loader->held.is_there)
        position = loader->held.before;
    for (int i = 0; i < loader->options->http.parallel; i++)
        if (loader->batches[i].state != BATCH_FREE && loader->batches[i].before.line < position.line)
            position = loader->batches[i].before;
    return position;
}

static void save(struct loader *loader, bool is_last)
{
    int64_t now_ms = clock_monotonic_ms();
    if (!loader->options->bookmark_path || (!is_last && now_ms - loader->saved_ms < SAVE_EVERY_MS))
        return;
    struct load_position position = done_with(loader);
    struct bookmark bookmark = loader->options->bookmark;
    bookmark.line = position.line;
    bookmark.offset = position.offset;
    loader->saved_ms = now_ms;
    if (!control_write_file(loader->arena, loader->options->bookmark_path,
                            bookmark_compose(loader->arena, &bookmark), 0644))
        loader->report->is_failed = loader->is_ended = true;
    arena_reset(loader->arena);
}

/* --- signals --- */

/* The first signal waits for the requests in flight, the second does not. */
static void loader_heed_signals(struct loader *loader)
{
    stop_heed(&loader->report->is_interrupted, &loader->is_abandoned);
    loader->is_ended = loader->is_ended || loader->report->is_interrupted;
}

/* --- filling a batch --- */

/* Reads nothing beyond the line that begins at `place`. */
static void end_at(struct loader *loader, struct load_position position)
{
    loader->is_ended = true;
    if (loader->stuck.line < 0)
        loader->stuck = position;
}

static void wrong_line(struct loader *loader, int64_t line, const char *what)
{
    progress_clear(&loader->progress);
    message_print("line %lld: %s", (long long)line, what);
    loader->report->wrong++;
    if (!loader->options->keep_going)
        loader->report->is_failed = loader->is_ended = true;
}

/* Reads up to the next line that is a document, if one has arrived. */
static void fetch_line(struct loader *loader, bool may_wait)
{
    while (!loader->held.is_there && !loader->is_ended) {
        struct load_position before = {loader->input->line, loader->input->offset};
        struct line_document document;
        const char *problem;
        struct bytes text;
        enum input_result result = input_next(loader->input, may_wait, &text);
        if (result == INPUT_NOT_YET)
            return;
        if (result == INPUT_STOPPED) { /* a signal, not always one that ends the load */
            loader_heed_signals(loader);
            continue;
        }
        if (result == INPUT_FAILED) {
            progress_clear(&loader->progress);
            message_print("%s: %s", loader->options->bookmark.file, strerror(errno));
            loader->report->is_failed = true;
        }
        if (result != INPUT_LINE) {
            loader->is_ended = true;
            return;
        }
        if (line_is_empty(text))
            continue;
        builder_clear(&loader->held.text, 1 << 20);
        arena_reset(loader->arena);
        if (line_read(loader->arena, text, &loader->held.text, &document, &problem)) {
            loader->held.is_there = true;
            loader->held.before = before;
            loader->held.name = document.name;
            loader->held.line = loader->input->line;
        } else {
            wrong_line(loader, loader->input->line, problem);
            if (loader->is_ended)
                end_at(loader, before);
        }
    }
}

static bool is_on_its_way(const struct loader *loader, uint64_t name)
{
    for (int i = 0; i < loader->options->http.parallel; i++) {
        const struct load_batch *batch = &loader->batches[i];
        for (int k = 0; batch->state != BATCH_FREE && k < batch->count; k++)
            if (batch->entries[k].name == name)
                return true;
    }
    return false;
}

static void begin_body(const struct loader *loader, struct builder *body)
{
    builder_clear(body, 4 << 20);
    if (loader->options->key.data) {
        builder_add_text(body, "{\"admin\":\"");
        builder_add_bytes(body, loader->options->key);
        builder_add_text(body, "\",\"param\":{\"docs\":[");
    } else {
        builder_add_text(body, "{\"param\":{\"docs\":[");
    }
}

#define BODY_END "]}}"

static void add_held(struct loader *loader, struct load_batch *batch)
{
    if (batch->count)
        builder_add_text(&batch->body, ",");
    batch->entries[batch->count++] =
        (struct load_entry){batch->body.size, loader->held.text.size, loader->held.name, loader->held.line};
    builder_add_bytes(&batch->body, builder_bytes(&loader->held.text));
    loader->held.is_there = false;
}

static bool has_waiting(const struct loader *loader)
{
    for (int i = 0; i < loader->options->http.parallel; i++)
        if (loader->batches[i].state == BATCH_WAITS)
            return true;
    return false;
}

/* Takes lines into a free batch; it stays free when none can be taken at present.  Lines that have arrived
 * are sent before it waits for more, and requests in flight are served meanwhile. */
static void loader_fill(struct loader *loader, struct load_batch *batch)
{
    const struct loader_options *options = loader->options;
    bool is_idle = !http_in_flight(loader->http) && !has_waiting(loader);
    batch->count = 0;
    for (;;) {
        fetch_line(loader, is_idle && !batch->count);
        if (!loader->held.is_there || is_on_its_way(loader, loader->held.name))
            break;
        if (!batch->count) {
            batch->state = BATCH_WAITS;
            batch->single = -1;
            batch->backoff = (struct backoff){0};
            batch->before = loader->held.before;
            begin_body(loader, &batch->body);
        } else if (batch->count == options->batch ||
                   (int64_t)(batch->body.size + loader->held.text.size) > options->batch_bytes) {
            break;
        }
        add_held(loader, batch);
    }
    if (batch->count)
        builder_add_text(&batch->body, BODY_END);
}

/* --- sending --- */

static void send_batch(struct loader *loader, struct load_batch *batch)
{
    struct http_request request = {.method = "POST",
                                   .url = loader->options->url,
                                   .content_type = "application/json",
                                   .body = builder_bytes(batch->single < 0 ? &batch->body : &batch->alone),
                                   .timeout_ms = REQUEST_MS,
                                   .owner = batch};
    batch->state = BATCH_SENT;
    http_send(loader->http, &request);
}

static void choose_single(struct loader *loader, struct load_batch *batch, int single)
{
    const struct load_entry *entry = &batch->entries[single];
    batch->single = single;
    batch->backoff = (struct backoff){0};
    batch->state = BATCH_WAITS;
    begin_body(loader, &batch->alone);
    builder_add(&batch->alone, batch->body.data + entry->start, entry->size);
    builder_add_text(&batch->alone, BODY_END);
}

/* --- answers --- */

static void end_step(struct loader *loader, struct load_batch *batch)
{
    if (batch->single >= 0 && batch->single + 1 < batch->count)
        choose_single(loader, batch, batch->single + 1);
    else
        batch->state = BATCH_FREE;
}

static void on_refused(struct loader *loader, struct load_batch *batch, const struct server_answer *answer)
{
    if (batch->single < 0 && batch->count > 1) {
        choose_single(loader, batch, 0);
        return;
    }
    struct load_position before = batch->before;
    wrong_line(loader, batch->entries[batch->single < 0 ? 0 : batch->single].line,
               arena_printf(loader->arena, "refused: %s %s", answer->code, answer->words));
    arena_reset(loader->arena);
    if (loader->options->keep_going)
        end_step(loader, batch);
    else
        end_at(loader, before); /* the batch is kept: it is not done */
}

/* "lines 1 to 32: XAWAY The server …" */
static void report_batch(struct loader *loader, const struct load_batch *batch,
                         const struct server_answer *answer, const char *more)
{
    const struct load_entry *first = &batch->entries[batch->single < 0 ? 0 : batch->single];
    const struct load_entry *last = batch->single < 0 ? &batch->entries[batch->count - 1] : first;
    progress_clear(&loader->progress);
    message_print("lines %lld to %lld: %s%s%s%s", (long long)first->line, (long long)last->line, answer->code,
                  *answer->code ? " " : "", answer->words, more);
}

static void loader_give_up(struct loader *loader, const struct load_batch *batch,
                           const struct server_answer *answer)
{
    if (!loader->report->is_failed)
        report_batch(loader, batch, answer, "");
    loader->report->is_failed = loader->is_ended = true;
}

static void on_again(struct loader *loader, struct load_batch *batch, const struct server_answer *answer)
{
    int64_t now_ms = clock_monotonic_ms();
    if (!backoff_goes_on(&batch->backoff, loader->options->retry_s)) {
        loader_give_up(loader, batch, answer);
        return;
    }
    batch->state = BATCH_WAITS;
    if (batch->backoff.tries > 1 && now_ms - loader->reported_ms > REPORT_EVERY_MS) {
        loader->reported_ms = now_ms;
        report_batch(loader, batch, answer, "; trying again");
    }
}

static void on_result(struct loader *loader, const struct http_result *result)
{
    struct load_batch *batch = result->owner;
    struct server_answer answer;
    enum answer_kind kind = answer_read(loader->arena, result, &answer);
    batch->state = BATCH_WAITS;
    if (!result->status && !loader->is_answered)
        kind = ANSWER_HOPELESS; /* a wrong address, a certificate that is not trusted */
    loader->is_answered = loader->is_answered || result->status;
    switch (kind) {
    case ANSWER_DONE:
        loader->report->documents += batch->single < 0 ? batch->count : 1;
        end_step(loader, batch);
        break;
    case ANSWER_AGAIN:
        on_again(loader, batch, &answer);
        break;
    case ANSWER_REFUSED:
        on_refused(loader, batch, &answer);
        break;
    case ANSWER_HOPELESS:
        loader_give_up(loader, batch, &answer);
        break;
    }
    arena_reset(loader->arena);
}

/* --- the whole --- */

/* Sends what is due and fills free batches; false when no work is left. */
static bool step(struct loader *loader)
{
    int64_t now_ms = clock_monotonic_ms(), wait_ms = WAIT_MS;
    bool is_stopping = loader->report->is_failed || loader->report->is_interrupted;
    for (int i = 0; i < loader->options->http.parallel && !is_stopping; i++) {
        struct load_batch *batch = &loader->batches[i];
        if (batch->state == BATCH_FREE)
            loader_fill(loader, batch);
        if (batch->state == BATCH_WAITS && batch->backoff.due_ms <= now_ms)
            send_batch(loader, batch);
        if (batch->state == BATCH_WAITS && batch->backoff.due_ms - now_ms < wait_ms)
            wait_ms = batch->backoff.due_ms - now_ms;
    }
    struct http_result result;
    if (http_receive(loader->http, wait_ms, &result))
        on_result(loader, &result);
    else if (!is_stopping && !http_in_flight(loader->http) && has_waiting(loader))
        clock_sleep_ms(wait_ms);
    else
        return http_in_flight(loader->http) > 0;
    return true;
}

static void free_batches(struct loader *loader)
{
    for (int i = 0; i < loader->options->http.parallel; i++) {
        builder_free(&loader->batches[i].body);
        builder_free(&loader->batches[i].alone);
    }
    free(loader->batches);
}

void loader_run(const struct loader_options *options, struct input *input, struct loader_report *report_r)
{
    struct loader loader = {.options = options,
                            .input = input,
                            .http = http_open(&options->http),
                            .batches = calloc((size_t)options->http.parallel, sizeof(struct load_batch)),
                            .arena = arena_create("line"),
                            .stuck = {-1, -1},
                            .start_line = input->line,
                            .report = report_r};
    if (!loader.batches)
        log_fatal("out of memory load");
    *report_r = (struct loader_report){0};
    progress_start(&loader.progress, input->offset, input->size);
    while (!loader.is_abandoned && step(&loader)) {
        loader_heed_signals(&loader);
        struct load_position position = done_with(&loader);
        progress_show(&loader.progress, position.line - loader.start_line, position.offset);
        save(&loader, false);
    }
    save(&loader, true);
    progress_clear(&loader.progress);
    report_r->line = done_with(&loader).line;
    report_r->lines = report_r->line - loader.start_line;
    http_close(loader.http);
    free_batches(&loader);
    builder_free(&loader.held.text);
    arena_destroy(loader.arena);
}
