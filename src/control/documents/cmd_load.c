/* cmd_load: `stampctl load`: options, the place to begin, and the summary at the end. */
#include "control/control.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "control/answer.h"
#include "control/backoff.h"
#include "control/documents/bookmark.h"
#include "control/documents/input.h"
#include "control/documents/line.h"
#include "control/documents/progress.h"
#include "control/documents/target.h"
#include "control/message.h"
#include "edge/http.h"

/* Sends lines as documents to a server, in batches, several in flight, until all are stored.
 *
 * Batches may end in any order, so progress counts up to the first line that is not done.  Two lines of the
 * same document are never in flight together: the later line in the file wins.  A batch that the server
 * refuses is sent again document by document, to identify the line; a batch that fails temporarily is sent
 * again later. */

enum { LOADER_BATCH_MAX = 256 };

struct loader_options {
    const char *url;            /* of the operation put */
    struct bytes key;           /* administrator's; NO_BYTES: none */
    int64_t batch, batch_bytes; /* most documents in a request, and most bytes unless it has only one */
    int64_t retry_s;            /* how long to retry a server that is temporarily unable */
    bool keep_going;            /* skip lines that are wrong or refused */
    struct http_options http;
    const char *bookmark_path; /* NULL: none is kept */
    struct bookmark bookmark;  /* where to begin; names of namespace and file */
};

struct loader_report {
    int64_t lines, documents; /* done, stored: by this run */
    int64_t wrong;            /* lines that are not documents or were refused */
    int64_t line;             /* all lines up to this one are done */
    bool is_failed;           /* did not reach the end; why has been reported */
    bool is_interrupted;
};

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

static void loader_run(const struct loader_options *options, struct input *input,
                       struct loader_report *report_r)
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

struct load_options {
    struct target target;
    const char *state;
    int64_t batch, batch_bytes, from;
    bool keep_going;
};

static const char *absolute(struct control *control, const char *path)
{
    char resolved[PATH_MAX];
    if (strcmp(path, "-") == 0 || !realpath(path, resolved))
        return path;
    return arena_copy(control->arena, resolved, strlen(resolved));
}

/* How far a former run has come; none: line 0. */
static bool read_bookmark(struct control *control, const struct load_options *options,
                          struct bookmark *bookmark)
{
    struct bookmark former;
    struct bytes text;
    if (!options->state || access(options->state, F_OK) != 0)
        return true;
    if (!control_read_file(control->arena, options->state, &text))
        return false;
    if (!bookmark_parse(control->arena, text, &former))
        message_print("%s: not a state file of load", options->state);
    else if (strcmp(former.ns, bookmark->ns) != 0 || strcmp(former.file, bookmark->file) != 0)
        message_print("%s: the state of another load, of %s into the namespace %s", options->state,
                      former.file, former.ns);
    else if (options->from > 1)
        message_print("%s: line %lld is reached; omit --from or remove the file", options->state,
                      (long long)former.line);
    else {
        *bookmark = former;
        return true;
    }
    return false;
}

/* Reads and drops the lines to skip, or seeks past them when their end is known. */
static bool go_to(struct input *input, const struct bookmark *bookmark)
{
    struct bytes text;
    if (bookmark->offset && input->size)
        return input_seek(input, bookmark->line, bookmark->offset);
    while (input->line < bookmark->line)
        if (input_next(input, true, &text) != INPUT_LINE)
            return false;
    return true;
}

static void cmd_load_report(const struct load_options *options, const struct loader_report *report,
                            int64_t spent_ms)
{
    const char *how = options->state ? "run the same command to continue" : NULL;
    printf("%lld lines, %lld documents stored in %lld.%lld s (%lld/s)", (long long)report->lines,
           (long long)report->documents, (long long)(spent_ms / 1000), (long long)(spent_ms / 100 % 10),
           (long long)(report->documents * 1000 / (spent_ms ? spent_ms : 1)));
    if (report->wrong)
        printf(", %lld wrong", (long long)report->wrong);
    printf("\n");
    if (!report->is_failed && !report->is_interrupted)
        return;
    fflush(stdout);
    if (how)
        message_print("%s; lines up to %lld are stored; %s",
                      report->is_interrupted ? "interrupted" : "stopped", (long long)report->line, how);
    else
        message_print("%s; lines up to %lld are stored; continue with --from %lld",
                      report->is_interrupted ? "interrupted" : "stopped", (long long)report->line,
                      (long long)report->line + 1);
}

static int cmd_load_load(struct control *control, const struct load_options *options, const char *url,
                         const char *path)
{
    struct loader_options loader = {
        .batch = options->batch,
        .batch_bytes = options->batch_bytes,
        .retry_s = options->target.retry_s,
        .keep_going = options->keep_going,
        .bookmark_path = options->state,
        .bookmark = {.line = options->from - 1, .ns = options->target.ns, .file = absolute(control, path)},
        .url = target_url(&options->target, control->arena, url, "put"),
        .http = target_http(&options->target)};
    struct loader_report result;
    struct input input;
    if (!target_read_key(&options->target, control, &loader.key) ||
        !read_bookmark(control, options, &loader.bookmark))
        return CONTROL_FAILED;
    int64_t start_ms = clock_monotonic_ms();
    bool is_open = input_open(&input, path, stop_open());
    if (!is_open)
        message_print("%s: %s", path, strerror(errno));
    else if (!go_to(&input, &loader.bookmark)) {
        message_print("%s: not the file that was loaded before: line %lld is missing or ends elsewhere", path,
                      (long long)loader.bookmark.line);
        is_open = false;
    }
    if (is_open) {
        loader_run(&loader, &input, &result);
        cmd_load_report(options, &result, clock_monotonic_ms() - start_ms);
    }
    input_close(&input);
    return is_open && !result.is_failed && !result.is_interrupted && !result.wrong ? CONTROL_DONE
                                                                                   : CONTROL_FAILED;
}

int control_load(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "load", "URL FILE", "Store documents, one JSON text a line, through the operation put.",
        "A line is {\"c\":class,\"id\":id,\"items\":[{\"c\":class,\"k\":key,\"j\":value}...]}; \"s\":text in "
        "place of\n"
        "\"j\" for raw items, no \"k\" for singletons; v, ct and dt of a dump are ignored.  FILE - is "
        "standard input.\n"
        "Items that a line does not name stay as they are.  Sending a line twice does no harm.\n"
        "Transient faults are retried; a line that the server refuses ends the load.\n");
    struct load_options options = {.target = TARGET_DEFAULT, .batch = 32, .batch_bytes = 1 << 20, .from = 1};
    const struct option_line lines[] = {
        TARGET_LINES(&options.target),
        TARGET_PARALLEL_LINE(&options.target),
        OPTION_NUMBER("batch", "N", &options.batch, 1, LOADER_BATCH_MAX,
                      "Send N documents in a request (default: 32)."),
        OPTION_NUMBER("batch-bytes", "N", &options.batch_bytes, 1024, 1 << 30,
                      "Send at most N bytes in a request of several documents (default: 1048576)."),
        OPTION_NUMBER("from", "LINE", &options.from, 1, INT64_MAX, "Begin at this line (default: 1)."),
        OPTION_TEXT("state", "FILE", &options.state, "Record the progress in FILE, and continue from there."),
        OPTION_FLAG("keep-going", &options.keep_going, "Continue after lines that are invalid or refused."),
        TARGET_CONFIG_LINE(control),
    };
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return target_is_right(&options.target, "load") ? cmd_load_load(control, &options, words[0], words[1])
                                                    : CONTROL_WRONG;
}
