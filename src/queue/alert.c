/* alert: schedules, composes and sends mails. */
#include "queue/alert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/coding/hash.h"
#include "base/log.h"
#include "base/secret.h"
#include "model/account/letter.h"
#include "model/document/stamp.h"
#include "edge/crypto/crypto.h"

enum {
    RECEIVERS_MAX = 16,
    KNOWN = 64,
    TIMEOUT_MS = 60000,
    WORDS_MAX = 2000,
    LINE_BYTES = 300,       /* SMTP allows 998 */
    NOTES_MAX = 2000,       /* the server reports again what does not fit */
    LISTED_MAX = 20,        /* tasks named in a mail */
    REMEMBERED_MS = 120000, /* a scan that began before the mail may report the failure again */
    PAUSE_LEAST_MS = 5000,
    PAUSE_MOST_MS = 600000,
};

/* A failure to be mailed. */
struct note {
    struct note *next;
    uint64_t name;            /* hash of its operation */
    struct alert_cause cause; /* with its own copies of texts */
    bool is_sent;             /* in the mail being sent */
    int64_t reported_ms;      /* monotonic; 0: not yet */
};

/* The last mail about an operation. */
struct alert_report {
    uint64_t name; /* hash of namespace and operation */
    int64_t at_ms; /* monotonic */
};

struct alert {
    const struct settings *settings;
    struct secret password;
    char *receivers; /* the setting mail_to, split into words */
    const char *to[RECEIVERS_MAX + 1];
    struct alert_report reports[KNOWN];
    struct note *notes; /* in order of arrival */
    size_t note_count;
    bool is_sending;
    uint64_t name_sent; /* of the mail being sent */
    int failures;       /* consecutive failed mails */
    int64_t not_before_ms;
    struct alert_counts counts;
};

struct alert *alert_create(const struct settings *settings, char *problem, size_t problem_size)
{
    struct alert *alert = calloc(1, sizeof *alert);
    if (!alert || !(alert->receivers = strdup(settings->mail_to)))
        log_fatal("out of memory");
    alert->settings = settings;
    size_t count = 0;
    char *rest = alert->receivers;
    for (char *word; (word = strsep(&rest, " \t")) != NULL;)
        if (*word && count < RECEIVERS_MAX)
            alert->to[count++] = word;
    if (*settings->mail_password_file && !secret_read(&alert->password, "mail_password_file",
                                                      settings->mail_password_file, problem, problem_size)) {
        alert_destroy(alert);
        return NULL;
    }
    return alert;
}

static void free_text(const void *text)
{
    free((void *)(uintptr_t)text); /* allocated by alert_keep() */
}

static void alert_forget(struct alert *alert, struct note **at)
{
    struct note *note = *at;
    *at = note->next;
    free_text(note->cause.ns);
    free_text(note->cause.task);
    free_text(note->cause.operation.data);
    free_text(note->cause.code.data);
    free_text(note->cause.words.data);
    free_text(note->cause.detail.data);
    free(note);
    alert->note_count--;
}

void alert_destroy(struct alert *alert)
{
    if (!alert)
        return;
    while (alert->notes)
        alert_forget(alert, &alert->notes);
    secret_erase(&alert->password);
    free(alert->receivers);
    free(alert);
}

/* --- schedule --- */

static uint64_t alert_hash_of(const struct alert_cause *cause)
{
    uint64_t hash = hash_more(HASH_START, bytes_of(cause->ns));
    return hash_more(hash_more(hash, BYTES(".")), cause->operation);
}

/* The slot of an operation; a new one evicts the one without mail for the longest time. */
static struct alert_report *find_report(struct alert *alert, uint64_t name)
{
    struct alert_report *oldest = alert->reports;
    for (size_t i = 0; i < KNOWN; i++) {
        if (alert->reports[i].name == name)
            return &alert->reports[i];
        if (alert->reports[i].at_ms < oldest->at_ms)
            oldest = &alert->reports[i];
    }
    *oldest = (struct alert_report){.name = name, .at_ms = INT64_MIN / 2};
    return oldest;
}

/* --- failures to be mailed --- */

static const char *alert_keep(const char *text, size_t size)
{
    char *copy = strndup(text ? text : "", size < WORDS_MAX ? size : WORDS_MAX);
    if (!copy)
        log_fatal("out of memory");
    return copy;
}

static struct bytes keep_bytes(struct bytes text)
{
    return bytes_of(alert_keep(text.data, text.size));
}

static bool is_worth_reporting(const struct alert *alert, const struct alert_cause *cause)
{
    return cause->startat &&
           (cause->failures == alert->settings->mail_failures || cause->startat >= STAMP_MAX);
}

static bool is_about(const struct note *note, const struct alert_cause *cause)
{
    return strcmp(note->cause.task, cause->task) == 0 && strcmp(note->cause.ns, cause->ns) == 0;
}

/* Is the failure queued or recently mailed?  Removes those mailed long ago, and an older one of the task not
 * mailed yet. */
static bool alert_is_known(struct alert *alert, const struct alert_cause *cause, int64_t now_ms)
{
    for (struct note **at = &alert->notes; *at;) {
        struct note *note = *at;
        bool is_same = is_about(note, cause) && note->cause.failures == cause->failures;
        bool is_old = note->reported_ms && now_ms - note->reported_ms > REMEMBERED_MS;
        if (is_same && !is_old)
            return true;
        if (is_old || (is_about(note, cause) && !note->is_sent && !note->reported_ms))
            alert_forget(alert, at);
        else
            at = &note->next;
    }
    return false;
}

void alert_report(struct alert *alert, const struct alert_cause *cause, bool is_unreported)
{
    if (!*alert->to || !(is_unreported || is_worth_reporting(alert, cause)) ||
        alert_is_known(alert, cause, clock_monotonic_ms()) || alert->note_count >= NOTES_MAX)
        return;
    struct note **at = &alert->notes, *note = calloc(1, sizeof *note);
    if (!note)
        log_fatal("out of memory");
    *note = (struct note){.name = alert_hash_of(cause), .cause = *cause};
    note->cause.ns = alert_keep(cause->ns, strlen(cause->ns));
    note->cause.task = alert_keep(cause->task, strlen(cause->task));
    note->cause.operation = keep_bytes(cause->operation);
    note->cause.code = keep_bytes(cause->code);
    note->cause.words = keep_bytes(cause->words);
    note->cause.detail = keep_bytes(cause->detail);
    while (*at)
        at = &(*at)->next;
    *at = note;
    alert->note_count++;
}

/* --- text --- */

/* Adds words without their line ends, reduced to printable UTF-8.  Text too long for a line continues on the
 * next, which begins with a blank, as in headers. */
static void alert_add_words(struct builder *mail, struct bytes words)
{
    size_t size = words.size < WORDS_MAX ? words.size : WORDS_MAX, written = 0;
    for (size_t i = 0; i < size; i++, written++) {
        unsigned char byte = (unsigned char)words.data[i];
        bool is_start = (byte & 0xc0) != 0x80;
        if (is_start && written >= LINE_BYTES) {
            builder_add_text(mail, "\r\n ");
            written = 0;
        }
        builder_add(mail, byte < 0x20 || byte == 0x7f ? " " : words.data + i, 1);
    }
}

static void add_line(struct builder *mail, const char *name, struct bytes words)
{
    if (!words.size)
        return;
    builder_printf(mail, "%-12s", name);
    alert_add_words(mail, words);
    builder_add_text(mail, "\r\n");
}

static void add_stamp(struct builder *mail, int64_t stamp)
{
    time_t seconds = (time_t)(stamp_to_epoch_ms(stamp) / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    builder_printf(mail, "%04d-%02d-%02d %02d:%02d:%02d UTC", parts.tm_year + 1900, parts.tm_mon + 1,
                   parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

static void add_head(struct builder *mail, const struct settings *settings, const struct alert_cause *cause,
                     int64_t now_ms)
{
    uint64_t random;
    crypto_random(&random, sizeof random);
    builder_printf(mail, "From: stampd <%s>\r\nTo: ", settings->mail_from);
    for (const char *at = settings->mail_to; *at;) {
        size_t size = strcspn(at, " \t");
        builder_printf(mail, "%s%.*s", at == settings->mail_to ? "" : ",\r\n ", (int)size, at);
        at += size + strspn(at + size, " \t");
    }
    builder_add_text(mail, "\r\n");
    letter_add_date(mail, now_ms);
    builder_printf(mail, "Message-ID: <%016llx.%s@stampd>\r\n", (unsigned long long)random, cause->task);
    builder_printf(mail, "Subject: stampd %s: ", cause->ns);
    alert_add_words(mail, cause->operation.size ? cause->operation : BYTES("a task"));
    builder_add_bytes(mail, bytes_of(cause->startat >= STAMP_MAX ? " is parked after " : " failed with "));
    alert_add_words(mail, cause->code);
    builder_add_text(mail, "\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
                           "Content-Transfer-Encoding: 8bit\r\nAuto-Submitted: auto-generated\r\n\r\n");
}

static void add_advice(struct builder *mail, const struct alert_cause *cause)
{
    builder_printf(mail,
                   "\r\nWhat it is, with its argument and the report of its last failure:\r\n"
                   "    stampctl task show %s %s\r\n"
                   "When the cause is mended, to run it now, as if new:\r\n"
                   "    stampctl task run %s %s\r\n"
                   "To keep it from being tried meanwhile, or to give it up for good:\r\n"
                   "    stampctl task hold %s %s\r\n"
                   "    stampctl task drop %s %s\r\n",
                   cause->ns, cause->task, cause->ns, cause->task, cause->ns, cause->task, cause->ns,
                   cause->task);
}

static void add_next_try(struct builder *mail, const struct alert_cause *cause)
{
    if (cause->startat >= STAMP_MAX)
        builder_add_text(mail, "none: it is parked until an administrator decides");
    else if (cause->startat)
        add_stamp(mail, cause->startat);
    else
        builder_add_text(mail, "not known");
}

static void add_others(struct builder *mail, const struct alert_cause *causes, size_t count, size_t more)
{
    if (count > 1)
        builder_add_text(mail, "\r\nThe same has happened to other tasks of this operation:\r\n");
    for (size_t i = 1; i < count; i++) {
        builder_printf(mail, "    %s  %s after %lld failure%s, ", causes[i].task,
                       causes[i].startat >= STAMP_MAX ? "parked" : "waits", (long long)causes[i].failures,
                       causes[i].failures == 1 ? "" : "s");
        alert_add_words(mail, causes[i].code);
        builder_add_text(mail, "\r\n");
    }
    if (more)
        builder_printf(mail, "and to %zu more.\r\n", more);
}

void alert_compose(struct builder *mail, const struct settings *settings, const struct alert_cause *causes,
                   size_t count, size_t more, int64_t now_ms)
{
    const struct alert_cause *cause = causes;
    add_head(mail, settings, cause, now_ms);
    builder_printf(mail, "A task has failed %lld time%s.\r\n\r\n", (long long)cause->failures,
                   cause->failures == 1 ? "" : "s");
    add_line(mail, "namespace", bytes_of(cause->ns));
    add_line(mail, "operation", cause->operation);
    add_line(mail, "task", bytes_of(cause->task));
    add_line(mail, "exception", cause->code);
    add_line(mail, "message", cause->words);
    add_line(mail, "detail", cause->detail);
    builder_printf(mail, "%-12s", "next try");
    add_next_try(mail, cause);
    builder_add_text(mail, "\r\n");
    add_others(mail, causes, count, more);
    add_advice(mail, cause);
}

/* --- sending --- */

static void alert_send(struct alert *alert, struct http *http, const struct alert_cause *causes, size_t count,
                       size_t more)
{
    const struct settings *settings = alert->settings;
    struct builder text = {0};
    alert_compose(&text, settings, causes, count, more, clock_wall_ms());
    struct http_mail mail = {
        .server = settings->mail_server,
        .from = settings->mail_from,
        .to = alert->to,
        .user = *settings->mail_user ? settings->mail_user : NULL,
        .password = alert->password.text ? alert->password.text : "",
        .needs_tls = settings->mail_tls,
        .ca_file = *settings->mail_ca_file ? settings->mail_ca_file : NULL,
        .text = builder_bytes(&text),
        .timeout_ms = TIMEOUT_MS,
    };
    http_send_mail(http, &mail);
    alert->is_sending = true;
    builder_free(&text);
}

/* Sends one mail about all queued failures of an operation. */
static void send_all_of(struct alert *alert, struct http *http, uint64_t name)
{
    struct alert_cause causes[LISTED_MAX];
    size_t count = 0, more = 0;
    for (struct note *note = alert->notes; note; note = note->next) {
        if (note->name != name || note->reported_ms)
            continue;
        note->is_sent = true;
        if (count < LISTED_MAX)
            causes[count++] = note->cause;
        else
            more++;
    }
    alert->name_sent = name;
    alert_send(alert, http, causes, count, more);
}

void alert_send_due(struct alert *alert, struct http *http)
{
    int64_t now_ms = clock_monotonic_ms(), interval_ms = alert->settings->mail_interval_s * 1000;
    if (alert->is_sending || now_ms < alert->not_before_ms || http_is_full(http))
        return;
    for (struct note *note = alert->notes; note; note = note->next)
        if (!note->reported_ms && now_ms - find_report(alert, note->name)->at_ms >= interval_ms) {
            send_all_of(alert, http, note->name);
            return;
        }
}

void alert_end(struct alert *alert, const struct http_result *result,
               void (*reported)(void *context, const struct alert_cause *cause), void *context)
{
    int64_t now_ms = clock_monotonic_ms();
    alert->is_sending = false;
    if (result->status) {
        log_info("mail sent status=%d", result->status);
        find_report(alert, alert->name_sent)->at_ms = now_ms;
        alert->failures = 0;
        alert->counts.sent++;
    } else {
        int64_t pause_ms = alert->failures > 7 ? PAUSE_MOST_MS : PAUSE_LEAST_MS << alert->failures;
        pause_ms = pause_ms < PAUSE_MOST_MS ? pause_ms : PAUSE_MOST_MS;
        alert->failures++;
        alert->counts.failed++;
        alert->not_before_ms = now_ms + pause_ms;
        log_error("cannot send mail again_ms=%lld: %s", (long long)pause_ms, result->problem);
    }
    for (struct note *note = alert->notes; note; note = note->next) {
        if (note->is_sent && result->status) {
            note->reported_ms = now_ms;
            reported(context, &note->cause);
        }
        note->is_sent = false;
    }
}

bool alert_is_sending(const struct alert *alert)
{
    return alert->is_sending;
}

struct alert_counts alert_count(const struct alert *alert)
{
    struct alert_counts counts = alert->counts;
    for (const struct note *note = alert->notes; note; note = note->next)
        counts.waiting += !note->reported_ms;
    return counts;
}
