/* alert: when to write, what to write, to whom. */
#include "queue/alert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "document/stamp.h"
#include "edge/crypto.h"

enum { RECEIVERS_MAX = 16, KNOWN = 64, TIMEOUT_MS = 60000, WORDS_MAX = 2000 };

/* The last mail about an operation. */
struct told {
    uint64_t name; /* hash of namespace and operation */
    int64_t at_ms; /* monotonic */
    int64_t untold;
};

struct alert {
    const struct settings *settings;
    struct secret password;
    char *receivers; /* the setting mail_to, cut into words */
    const char *to[RECEIVERS_MAX + 1];
    struct told told[KNOWN];
    int pending;
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

void alert_destroy(struct alert *alert)
{
    if (!alert)
        return;
    secret_erase(&alert->password);
    free(alert->receivers);
    free(alert);
}

/* --- when --- */

static uint64_t hash_of(const struct alert_cause *cause)
{
    uint64_t hash = 14695981039346656037u;
    for (const char *p = cause->space; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 1099511628211u;
    hash = (hash ^ '.') * 1099511628211u;
    for (size_t i = 0; i < cause->operation.size; i++)
        hash = (hash ^ (unsigned char)cause->operation.data[i]) * 1099511628211u;
    return hash;
}

/* The place of an operation; the one that is silent longest makes room for a new one. */
static struct told *find_told(struct alert *alert, uint64_t name)
{
    struct told *oldest = alert->told;
    for (size_t i = 0; i < KNOWN; i++) {
        if (alert->told[i].name == name)
            return &alert->told[i];
        if (alert->told[i].at_ms < oldest->at_ms)
            oldest = &alert->told[i];
    }
    *oldest = (struct told){.name = name, .at_ms = INT64_MIN / 2};
    return oldest;
}

static bool is_worth_telling(const struct alert *alert, const struct alert_cause *cause)
{
    return *alert->to && (cause->failures == alert->settings->mail_failures || cause->startat >= STAMP_MAX);
}

/* --- what --- */

/* One line of the text: no line ends of others' making, nothing but printable characters and UTF-8. */
static void add_words(struct builder *mail, struct bytes words)
{
    size_t size = words.size < WORDS_MAX ? words.size : WORDS_MAX;
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)words.data[i];
        builder_add(mail, byte < 0x20 || byte == 0x7f ? " " : words.data + i, 1);
    }
}

static void add_line(struct builder *mail, const char *name, struct bytes words)
{
    if (!words.size)
        return;
    builder_printf(mail, "%-12s", name);
    add_words(mail, words);
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

/* The date as mails have it, whatever the locale. */
static void add_date(struct builder *mail, int64_t now_ms)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    builder_printf(mail, "Date: %s, %02d %s %04d %02d:%02d:%02d +0000\r\n", days[parts.tm_wday],
                   parts.tm_mday, months[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min,
                   parts.tm_sec);
}

static void add_head(struct builder *mail, const struct settings *settings, const struct alert_cause *cause,
                     int64_t now_ms)
{
    uint64_t random;
    crypto_random(&random, sizeof random);
    builder_printf(mail, "From: stampd <%s>\r\nTo: ", settings->mail_from);
    for (const char *at = settings->mail_to; *at;) {
        size_t size = strcspn(at, " \t");
        builder_printf(mail, "%s%.*s", at == settings->mail_to ? "" : ", ", (int)size, at);
        at += size + strspn(at + size, " \t");
    }
    builder_add_text(mail, "\r\n");
    add_date(mail, now_ms);
    builder_printf(mail, "Message-ID: <%016llx.%s@stampd>\r\n", (unsigned long long)random, cause->task);
    builder_printf(mail, "Subject: stampd %s: ", cause->space);
    add_words(mail, cause->operation.size ? cause->operation : BYTES("a task"));
    builder_add_bytes(mail, bytes_of(cause->startat >= STAMP_MAX ? " is parked after " : " failed with "));
    add_words(mail, cause->code);
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
                   cause->space, cause->task, cause->space, cause->task, cause->space, cause->task,
                   cause->space, cause->task);
}

void alert_compose(struct builder *mail, const struct settings *settings, const struct alert_cause *cause,
                   int64_t untold, int64_t now_ms)
{
    add_head(mail, settings, cause, now_ms);
    builder_printf(mail, "A task has failed %lld time%s.\r\n\r\n", (long long)cause->failures,
                   cause->failures == 1 ? "" : "s");
    add_line(mail, "namespace", bytes_of(cause->space));
    add_line(mail, "operation", cause->operation);
    add_line(mail, "task", bytes_of(cause->task));
    add_line(mail, "exception", cause->code);
    add_line(mail, "message", cause->words);
    add_line(mail, "detail", cause->detail);
    builder_printf(mail, "%-12s", "next try");
    if (cause->startat >= STAMP_MAX)
        builder_add_text(mail, "none: it is parked until an administrator decides");
    else
        add_stamp(mail, cause->startat);
    builder_add_text(mail, "\r\n");
    add_advice(mail, cause);
    if (untold)
        builder_printf(mail,
                       "\r\n%lld more failures of this operation were not told since the last mail.\r\n",
                       (long long)untold);
}

/* --- sending --- */

static void send(struct alert *alert, struct http *http, const struct alert_cause *cause, int64_t untold)
{
    const struct settings *settings = alert->settings;
    struct builder text = {0};
    alert_compose(&text, settings, cause, untold, clock_wall_ms());
    struct http_mail mail = {
        .server = settings->mail_server,
        .from = settings->mail_from,
        .to = alert->to,
        .user = *settings->mail_user ? settings->mail_user : NULL,
        .password = alert->password.text ? alert->password.text : "",
        .needs_tls = strcmp(settings->mail_tls, "on") == 0,
        .ca_file = *settings->mail_ca_file ? settings->mail_ca_file : NULL,
        .text = builder_bytes(&text),
        .timeout_ms = TIMEOUT_MS,
    };
    http_send_mail(http, &mail);
    alert->pending++;
    builder_free(&text);
}

void alert_tell(struct alert *alert, struct http *http, const struct alert_cause *cause)
{
    if (!is_worth_telling(alert, cause))
        return;
    struct told *told = find_told(alert, hash_of(cause));
    int64_t now_ms = clock_monotonic_ms();
    if (now_ms - told->at_ms < alert->settings->mail_interval_s * 1000) {
        told->untold++;
        return;
    }
    send(alert, http, cause, told->untold);
    told->at_ms = now_ms;
    told->untold = 0;
}

void alert_end(struct alert *alert, const struct http_result *result)
{
    alert->pending--;
    if (result->status)
        log_info("mail sent status=%d", result->status);
    else
        log_error("mail could not be sent: %s", result->problem);
}

int alert_pending(const struct alert *alert)
{
    return alert->pending;
}
