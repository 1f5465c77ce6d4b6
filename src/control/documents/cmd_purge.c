/* cmd_purge: `stampctl purge`: options, and the summary at the end. */
#include "control/control.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/coding/hex.h"
#include "base/stop.h"
#include "control/answer.h"
#include "control/backoff.h"
#include "control/documents/page.h"
#include "control/documents/progress.h"
#include "control/documents/target.h"
#include "control/message.h"
#include "edge/crypto/crypto.h"
#include "edge/http.h"
#include "edge/json/json.h"
#include "model/document/stamp.h"

/* --- the walk --- */

/* Deletes documents through a server, in the order of class and id, page by page.
 *
 * `list` returns names and versions; the selected ones are deleted by `put` in small batches, each under the
 * condition that it still has the version that was listed.  A document that has changed meanwhile stays, and
 * so does one that was deleted and created again.  One request is in flight at a time; each batch has an
 * Idempotency-Key, so that one whose answer was lost is not taken for changed by others.  One request after
 * the other: a page of classes, a page of names, batches of deletions. */

struct purger_options {
    const char *ping_url, *list_url, *put_url;
    struct bytes key;    /* administrator's; NO_BYTES: none */
    struct bytes class;  /* NO_BYTES: all */
    struct bytes prefix; /* of ids; NO_BYTES: any */
    int64_t days;        /* only documents that have not changed for so long, by the server's clock; 0: all */
    int64_t retry_s;     /* how long to retry a server that is temporarily unable */
    bool is_dry;         /* only counts */
    struct http_options http;
};

struct purger_report {
    int64_t listed, selected; /* documents */
    int64_t deleted;          /* by this run */
    int64_t kept;             /* selected, but changed or deleted before their turn */
    bool is_failed;           /* did not reach the end; why has been reported */
    bool is_interrupted; /* by a first signal, after the request in flight; a second one does not wait for it
                          */
};

enum {
    BATCH_MOST = 32, /* documents of one commit */
    NAMES_A_PAGE = 1000,
    REQUEST_MS = 300 * 1000,
    REPORT_EVERY_MS = 5000,
    KEY_BYTES = 16,
    WAIT_MS = 100, /* between two checks for signals */
    KEEP_BYTES = 1 << 20,
};

struct purger {
    const struct purger_options *options;
    struct http *http;
    struct arena *classes, *names; /* of the present pages */
    struct arena *arena;           /* of an answer */
    struct builder body;
    bool is_answered;  /* the server has answered once */
    bool is_abandoned; /* the request in flight is not waited for */
    int64_t before;    /* documents of an older version are selected */
    int64_t reported_ms;
    struct progress progress;
    struct purger_report class; /* of the present class */
    struct purger_report *report;
};

#define DAY_MS INT64_C(86400000)

static bool is_stopping(const struct purger *purger)
{
    return purger->report->is_failed || purger->report->is_interrupted;
}

static bool purger_fail(struct purger *purger, const char *code, const char *words)
{
    progress_clear(&purger->progress);
    message_print("%s%s%s", code, *code ? " " : "", words);
    purger->report->is_failed = true;
    return false;
}

/* --- one request --- */

/* Sends the body once, if it is not empty, and waits for what comes, a signal included.  `key` NULL: without
 * an Idempotency-Key. */
static void send_once(struct purger *purger, const char *url, const char *key, struct http_result *result_r)
{
    bool has_body = purger->body.size > 0;
    http_send(purger->http, &(struct http_request){.method = has_body ? "POST" : "GET",
                                                   .url = url,
                                                   .content_type = has_body ? "application/json" : NULL,
                                                   .headers = key ? (const char *const[]){key, NULL} : NULL,
                                                   .body = builder_bytes(&purger->body),
                                                   .timeout_ms = REQUEST_MS});
    while (!http_receive(purger->http, WAIT_MS, result_r)) {
        stop_heed(&purger->report->is_interrupted, &purger->is_abandoned);
        if (purger->is_abandoned) {
            *result_r = (struct http_result){.problem = "interrupted"};
            return;
        }
        progress_show(&purger->progress, purger->report->listed, 0);
    }
    stop_heed(&purger->report->is_interrupted, &purger->is_abandoned);
}

static bool wait_to_retry(struct purger *purger, struct backoff *backoff, const struct server_answer *answer)
{
    if (!backoff_goes_on(backoff, purger->options->retry_s))
        return purger_fail(purger, answer->code, answer->words);
    int64_t now_ms = clock_monotonic_ms();
    if (backoff->tries > 1 && now_ms - purger->reported_ms > REPORT_EVERY_MS) {
        purger->reported_ms = now_ms;
        progress_clear(&purger->progress);
        message_print("%s%s%s; retrying", answer->code, *answer->code ? " " : "", answer->words);
    }
    while (!is_stopping(purger) && (now_ms = clock_monotonic_ms()) < backoff->due_ms) {
        clock_sleep_ms(backoff->due_ms - now_ms < WAIT_MS ? backoff->due_ms - now_ms : WAIT_MS);
        stop_heed(&purger->report->is_interrupted, &purger->is_abandoned);
    }
    return !is_stopping(purger);
}

/* Sends the body until the server accepts or refuses it.  False: failed, which is reported, or interrupted.
 * The result is valid until the next request. */
static bool purger_ask(struct purger *purger, const char *url, const char *key, struct http_result *result_r,
                       struct server_answer *refusal_r, bool *is_refused_r)
{
    struct backoff backoff = {0};
    do {
        arena_reset(purger->arena);
        send_once(purger, url, key, result_r);
        if (purger->is_abandoned)
            return false;
        enum answer_kind kind = answer_read(purger->arena, result_r, refusal_r);
        if (!result_r->status && !purger->is_answered)
            kind = ANSWER_HOPELESS; /* a wrong address, a certificate that is not trusted */
        purger->is_answered = purger->is_answered || result_r->status;
        *is_refused_r = kind == ANSWER_REFUSED;
        if (kind == ANSWER_DONE || kind == ANSWER_REFUSED)
            return true;
        if (kind == ANSWER_HOPELESS)
            return purger_fail(purger, refusal_r->code, refusal_r->words);
    } while (wait_to_retry(purger, &backoff, refusal_r));
    return false;
}

static void purger_begin(struct purger *purger)
{
    builder_clear(&purger->body, KEEP_BYTES);
    target_begin_body(&purger->body, purger->options->key);
}

/* --- deleting --- */

#define KEY_NAME "Idempotency-Key: "
enum { KEY_HEADER = sizeof KEY_NAME + (size_t)KEY_BYTES * 2 };

static void write_key(char header_r[KEY_HEADER])
{
    unsigned char random[KEY_BYTES];
    crypto_random(random, sizeof random);
    memcpy(header_r, KEY_NAME, sizeof KEY_NAME);
    hex_write(random, sizeof random, header_r + sizeof KEY_NAME - 1);
    header_r[KEY_HEADER - 1] = '\0';
}

/* `is_refused_r` with one document: it is not what it was. */
static bool delete_batch(struct purger *purger, const struct page_name *names, size_t count,
                         bool *is_refused_r)
{
    struct http_result result;
    struct server_answer refusal;
    char key[KEY_HEADER];
    purger_begin(purger);
    builder_add_text(&purger->body, "\"docs\":[");
    for (size_t i = 0; i < count; i++) {
        builder_printf(&purger->body, "%s{\"delete\":true,\"if\":%lld", i ? "," : "",
                       (long long)names[i].version);
        json_add_member(&purger->body, "c", names[i].class);
        json_add_member(&purger->body, "id", names[i].id);
        builder_add_text(&purger->body, "}");
    }
    builder_add_text(&purger->body, "]}}");
    write_key(key);
    if (!purger_ask(purger, purger->options->put_url, key, &result, &refusal, is_refused_r))
        return false;
    if (*is_refused_r && count == 1 && strcmp(refusal.code, "AVERSION") != 0) {
        progress_clear(&purger->progress);
        message_print("%s %s:", message_quote(purger->arena, names->class),
                      message_quote(purger->arena, names->id));
        return purger_fail(purger, refusal.code, refusal.words);
    }
    if (!*is_refused_r)
        purger->class.deleted += (int64_t)count;
    else if (count == 1)
        purger->class.kept++;
    return true;
}

/* A batch that is refused is sent again in halves, so that only what has changed stays. */
static bool delete_documents(struct purger *purger, const struct page_name *names, size_t count)
{
    bool is_refused;
    if (is_stopping(purger) || !delete_batch(purger, names, count, &is_refused))
        return false;
    size_t half = count / 2;
    return !is_refused || count == 1 ||
           (delete_documents(purger, names, half) && delete_documents(purger, names + half, count - half));
}

/* --- listing --- */

static bool take_page(struct purger *purger, const struct page_name *names, size_t count)
{
    struct page_name batch[BATCH_MOST];
    size_t selected = 0;
    for (size_t i = 0; i < count; i++) {
        purger->class.listed++;
        purger->report->listed++;
        if (names[i].version < purger->before) {
            purger->class.selected++;
            batch[selected++] = names[i];
        }
        bool is_full = selected == BATCH_MOST || (selected && i + 1 == count);
        if (is_full && !purger->options->is_dry && !delete_documents(purger, batch, selected))
            return false;
        if (is_full)
            selected = 0;
    }
    progress_show(&purger->progress, purger->report->listed, 0);
    return true;
}

/* Requests a page, whose text is kept in `arena`, which is reset before. */
static bool request_page(struct purger *purger, struct arena *arena, struct bytes *text_r)
{
    struct http_result result;
    struct server_answer refusal;
    bool is_refused;
    builder_add_text(&purger->body, "}}");
    if (is_stopping(purger) ||
        !purger_ask(purger, purger->options->list_url, NULL, &result, &refusal, &is_refused))
        return false;
    if (is_refused)
        return purger_fail(purger, refusal.code, refusal.words);
    arena_reset(arena); /* the cursor of the page before is in the request */
    *text_r = arena_keep(arena, result.body);
    return true;
}

static bool is_no_answer(struct purger *purger)
{
    return purger_fail(purger, "", "this is no answer of stampd");
}

static bool walk_class(struct purger *purger, struct bytes class)
{
    struct bytes text, cursor = NO_BYTES;
    struct page_name *names;
    size_t count;
    do {
        purger_begin(purger);
        builder_printf(&purger->body, "\"limit\":%d", NAMES_A_PAGE);
        json_add_member(&purger->body, "c", class);
        json_add_member(&purger->body, "prefix", purger->options->prefix);
        json_add_member(&purger->body, "cursor", cursor);
        if (!request_page(purger, purger->names, &text))
            return false;
        if (!page_read_names(purger->names, text, &names, &count, &cursor))
            return is_no_answer(purger);
        if (!take_page(purger, names, count))
            return false;
    } while (cursor.data);
    return true;
}

static bool purge_class(struct purger *purger, struct bytes class)
{
    struct purger_report *one = &purger->class, *all = purger->report;
    *one = (struct purger_report){0};
    bool is_done = walk_class(purger, class);
    all->selected += one->selected;
    all->deleted += one->deleted;
    all->kept += one->kept;
    if (!one->selected)
        return is_done;
    progress_clear(&purger->progress);
    if (purger->options->is_dry)
        printf("%.*s: %lld of %lld documents would be deleted\n", (int)class.size, class.data,
               (long long)one->selected, (long long)one->listed);
    else
        printf("%.*s: %lld of %lld documents deleted\n", (int)class.size, class.data, (long long)one->deleted,
               (long long)one->listed);
    fflush(stdout);
    return is_done;
}

/* The age of documents is that of the server's clock, which made their versions. */
static bool find_age(struct purger *purger)
{
    struct json *root;
    struct http_result result;
    struct server_answer refusal;
    int64_t now;
    bool is_refused;
    purger->before = INT64_MAX;
    if (!purger->options->days)
        return true;
    builder_clear(&purger->body, KEEP_BYTES);
    if (!purger_ask(purger, purger->options->ping_url, NULL, &result, &refusal, &is_refused))
        return false;
    if (is_refused)
        return purger_fail(purger, refusal.code, refusal.words);
    if (!json_is_tree(purger->arena, result.body, 32, 1, &root) ||
        !json_is_i64(json_member(root, "t"), &now) || !stamp_is_valid(now))
        return is_no_answer(purger);
    purger->before = stamp_add_ms(now, -purger->options->days * DAY_MS);
    return true;
}

static bool purge_classes(struct purger *purger)
{
    struct bytes text, cursor = NO_BYTES, *classes;
    size_t count;
    if (purger->options->class.data)
        return purge_class(purger, purger->options->class);
    do {
        purger_begin(purger);
        builder_printf(&purger->body, "\"limit\":%d", NAMES_A_PAGE);
        json_add_member(&purger->body, "cursor", cursor);
        if (!request_page(purger, purger->classes, &text))
            return false;
        if (!page_read_classes(purger->classes, text, &classes, &count, &cursor))
            return is_no_answer(purger);
        for (size_t i = 0; i < count; i++)
            if (!purge_class(purger, classes[i]))
                return false;
    } while (cursor.data);
    return true;
}

/* Prints a line for each class that has selected documents. */
static void purger_run(const struct purger_options *options, struct purger_report *report_r)
{
    struct purger purger = {.options = options,
                            .http = http_open(&options->http),
                            .classes = arena_create("classes"),
                            .names = arena_create("names"),
                            .arena = arena_create("answer"),
                            .report = report_r};
    *report_r = (struct purger_report){0};
    stop_open();
    progress_start(&purger.progress, 0, 0);
    if (!(find_age(&purger) && purge_classes(&purger)) && !report_r->is_failed)
        report_r->is_interrupted = true;
    progress_clear(&purger.progress);
    http_close(purger.http);
    builder_free(&purger.body);
    arena_destroy(purger.classes);
    arena_destroy(purger.names);
    arena_destroy(purger.arena);
}

/* --- the command --- */

enum { DAYS_MOST = 36500 };

struct purge_options {
    struct target target;
    const char *class, *prefix;
    int64_t days;
    bool is_dry, is_sure;
};

static int purge(struct control *control, const struct purge_options *options, const char *url)
{
    struct purger_options purger = {.class = bytes_of(options->class),
                                    .prefix = bytes_of(options->prefix),
                                    .days = options->days,
                                    .retry_s = options->target.retry_s,
                                    .is_dry = options->is_dry,
                                    .ping_url = target_ping_url(&options->target, control->arena, url),
                                    .list_url = target_url(&options->target, control->arena, url, "list"),
                                    .put_url = target_url(&options->target, control->arena, url, "put"),
                                    .http = target_http(&options->target)};
    struct purger_report report;
    if (!target_read_key(&options->target, control, &purger.key))
        return CONTROL_FAILED;
    purger_run(&purger, &report);
    if (options->is_dry)
        printf("%s: %lld of %lld documents would be deleted\n", options->target.ns,
               (long long)report.selected, (long long)report.listed);
    else
        printf("%s: %lld of %lld documents deleted\n", options->target.ns, (long long)report.deleted,
               (long long)report.listed);
    if (report.kept)
        printf("%s: %lld documents were changed or deleted by others meanwhile\n", options->target.ns,
               (long long)report.kept);
    if (report.is_interrupted) {
        fflush(stdout);
        message_print("interrupted; run the same command to continue");
    }
    return report.is_failed || report.is_interrupted ? CONTROL_FAILED : CONTROL_DONE;
}

static bool cmd_purge_are_right(const struct purge_options *options)
{
    if (!target_is_right(&options->target, "purge"))
        return false;
    if (strcmp(options->target.ns, "z") == 0)
        message_print("purge: the documents of z are the configuration of all namespaces");
    else if (options->class && !control_check_class("purge", options->class))
        return false; /* it was reported */
    else if (!options->is_dry && !options->is_sure)
        message_print("purge: this destroys documents; try --dry-run, then confirm with --yes");
    else
        return true;
    return false;
}

int control_purge(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "purge", "URL", "Delete the documents of a namespace, of a class, or of an age.",
        "Works in batches of up to 32 documents, each a commit of the server, while it is used.  A document\n"
        "that is changed before its batch stays.  After an interruption the same command continues.\n"
        "Expired documents and old deletions: `stampctl ns purge`.  Documents with a certain content:\n"
        "`stampctl change --delete`.\n");
    struct purge_options options = {.target = TARGET_DEFAULT};
    const struct option_line lines[] = {
        TARGET_LINES(&options.target),
        OPTION_TEXT("class", "NAME", &options.class, "Delete only documents of this class."),
        OPTION_TEXT("prefix", "TEXT", &options.prefix, "Delete only documents whose id begins with TEXT."),
        OPTION_NUMBER("older-than", "DAYS", &options.days, 1, DAYS_MOST,
                      "Delete only documents that have not changed for DAYS."),
        OPTION_FLAG("dry-run", &options.is_dry, "Only count the documents."),
        OPTION_FLAG("yes", &options.is_sure, "Yes, these documents are to be destroyed."),
        TARGET_CONFIG_LINE(control),
    };
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return cmd_purge_are_right(&options) ? purge(control, &options, words[0]) : CONTROL_WRONG;
}
