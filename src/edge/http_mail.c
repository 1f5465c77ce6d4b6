/* http_mail: mails over SMTP, in parallel with the requests of the same client. */
#include "edge/http.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "edge/http_private.h"

struct mail {
    CURL *easy;
    struct curl_slist *to;
    struct builder text;
    size_t sent;
    void *owner;
    struct mail *next;
    char problem[CURL_ERROR_SIZE];
};

/* The problem of the last mail, for its result. */
static char last_problem[CURL_ERROR_SIZE];

static size_t give_text(char *buffer, size_t size, size_t count, void *context)
{
    struct mail *mail = context;
    size_t room = size * count, left = mail->text.size - mail->sent;
    size_t part = left < room ? left : room;
    memcpy(buffer, mail->text.data + mail->sent, part);
    mail->sent += part;
    return part;
}

static size_t ignore(char *data, size_t size, size_t count, void *context)
{
    (void)data, (void)context;
    return size * count;
}

static void add_receivers(struct mail *mail, const char *const *to)
{
    for (; *to; to++) {
        struct curl_slist *longer = curl_slist_append(mail->to, *to);
        if (!longer)
            log_fatal("out of memory mail");
        mail->to = longer;
    }
}

static void set_mail(struct mail *mail, const struct http_mail *from)
{
    CURL *easy = mail->easy;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    curl_easy_setopt(easy, CURLOPT_URL, from->server);
    curl_easy_setopt(easy, CURLOPT_MAIL_FROM, from->from);
    curl_easy_setopt(easy, CURLOPT_MAIL_RCPT, mail->to);
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_text);
    curl_easy_setopt(easy, CURLOPT_READDATA, mail);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)from->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, mail->problem);
    curl_easy_setopt(easy, CURLOPT_USE_SSL, from->needs_tls ? (long)CURLUSESSL_ALL : (long)CURLUSESSL_NONE);
    if (from->user) {
        curl_easy_setopt(easy, CURLOPT_USERNAME, from->user);
        curl_easy_setopt(easy, CURLOPT_PASSWORD, from->password);
    }
    if (from->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, from->ca_file);
}

void http_send_mail(struct http *http, const struct http_mail *from)
{
    struct mail *mail = calloc(1, sizeof *mail);
    if (!mail || !(mail->easy = curl_easy_init()))
        log_fatal("out of memory mail");
    builder_add_bytes(&mail->text, from->text);
    add_receivers(mail, from->to);
    mail->owner = from->owner;
    set_mail(mail, from);
    mail->next = http->mails;
    http->mails = mail;
    http_begin(http, mail->easy);
}

static void free_mail(struct mail *mail)
{
    curl_easy_cleanup(mail->easy);
    curl_slist_free_all(mail->to);
    builder_free(&mail->text);
    free(mail);
}

bool http_take_mail(struct http *http, CURL *easy, CURLcode code, struct http_result *result_r)
{
    struct mail **at = &http->mails;
    while (*at && (*at)->easy != easy)
        at = &(*at)->next;
    struct mail *mail = *at;
    if (!mail)
        return false;
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    *result_r = (struct http_result){.owner = mail->owner, .problem = "", .reason = "", .body = BYTES("")};
    if (code == CURLE_OK)
        result_r->status = (int)status;
    else {
        snprintf(last_problem, sizeof last_problem, "%s",
                 mail->problem[0] ? mail->problem : curl_easy_strerror(code));
        result_r->problem = last_problem;
        result_r->reason = http_reason(code, "the mail was not taken");
        /* A wrong password is the server's own trouble, whatever its code. */
        result_r->refusal = status >= 500 && status < 600 && code != CURLE_LOGIN_DENIED ? (int)status : 0;
    }
    *at = mail->next;
    free_mail(mail);
    return true;
}

void http_drop_mails(struct http *http)
{
    while (http->mails) {
        struct mail *mail = http->mails;
        http->mails = mail->next;
        curl_multi_remove_handle(http->multi, mail->easy);
        free_mail(mail);
    }
}
