/* http: slots, requests and mails, and the wait for finished transfers; the only file that includes libcurl.
 */
#include "edge/http.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/address.h"
#include "base/builder.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

enum { HTTP_OTHERS_MAX = 256 };

struct place {
    CURL *easy;
    struct curl_slist *headers;
    struct builder answer;
    void *owner;
    size_t answer_most;
    enum http_reach reach;
    bool is_busy, is_too_large, is_out_of_reach, is_plain; /* is_plain: http: */
    char problem[CURL_ERROR_SIZE];
};

struct http {
    CURLM *multi;
    struct mail *mails; /* in flight */
    int parallel, in_flight;
    struct place places[];
};

/* Hands a transfer to libcurl. */
static void http_begin(struct http *http, CURL *easy)
{
    CURLMcode code = curl_multi_add_handle(http->multi, easy);
    if (code != CURLM_OK)
        log_fatal("libcurl: %s", curl_multi_strerror(code));
}

/* The member `reason` of a result; `otherwise`: for a code without words of its own. */
static const char *http_reason(CURLcode code, const char *otherwise)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return "its name has no address";
    case CURLE_COULDNT_CONNECT:
        return "it does not let us connect";
    case CURLE_OPERATION_TIMEDOUT:
        return "the time was over";
    case CURLE_USE_SSL_FAILED:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
        return "the encrypted connection was not made";
    case CURLE_LOGIN_DENIED:
        return "it refuses our user or password";
    default:
        return otherwise;
    }
}

/* If the finished transfer was a mail, writes its result and returns true. */
static bool http_take_mail(struct http *http, CURL *easy, CURLcode code, struct http_result *result_r);
static void http_drop_mails(struct http *http);

enum {
    UPLOAD_BUFFER = 256 << 10, /* one TLS write sends a whole batch */
};

static size_t take_answer(char *data, size_t size, size_t count, void *context)
{
    struct place *place = context;
    place->is_too_large = place->answer.size + size * count > place->answer_most;
    if (place->is_too_large)
        return 0;
    builder_add(&place->answer, data, size * count);
    return size * count;
}

/* Checks every address when its connection is made: a name may resolve differently each time. */
static curl_socket_t open_within_reach(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct place *place = context;
    (void)purpose;
    bool is_allowed = address_is_public(&address->addr) && !place->is_plain;
    if (place->reach == HTTP_PUBLIC_OR_LOOPBACK)
        is_allowed |= address_is_loopback(&address->addr);
    if (is_allowed)
        return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    place->is_out_of_reach = true;
    return CURL_SOCKET_BAD;
}

static void limit_reach(struct place *place, enum http_reach reach)
{
    CURL *easy = place->easy;
    place->reach = reach;
    if (reach == HTTP_EVERYWHERE)
        return;
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_within_reach);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, place);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    if (reach == HTTP_PUBLIC)
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
}

/* Sets the options common to all requests of a slot. */
static void prepare_place(struct place *place, const struct http_options *options)
{
    place->easy = curl_easy_init();
    if (!place->easy)
        log_fatal("libcurl cannot start");
    CURL *easy = place->easy;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)options->connect_timeout_ms);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BUFFER);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, place);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, place);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, place->problem);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, options->is_insecure ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, options->is_insecure ? 0L : 2L);
    if (options->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca_file);
    place->answer_most = options->answer_most ? options->answer_most : HTTP_ANSWER_MAX;
    limit_reach(place, options->reach);
}

struct http *http_open(const struct http_options *options)
{
    assert(options->parallel > 0);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        log_fatal("libcurl cannot start");
    struct http *http =
        memory_zeroed(1, sizeof *http + (size_t)options->parallel * sizeof *http->places, "http");
    http->parallel = options->parallel;
    http->multi = curl_multi_init();
    if (!http->multi)
        log_fatal("libcurl cannot start");
    curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)options->parallel);
    for (int i = 0; i < http->parallel; i++)
        prepare_place(&http->places[i], options);
    return http;
}

/* They may have keys. */
static void free_headers(struct place *place)
{
    curl_easy_setopt(place->easy, CURLOPT_HTTPHEADER, NULL);
    for (struct curl_slist *one = place->headers; one; one = one->next)
        explicit_bzero(one->data, strlen(one->data));
    curl_slist_free_all(place->headers);
    place->headers = NULL;
}

void http_close(struct http *http)
{
    if (!http)
        return;
    for (int i = 0; i < http->parallel; i++) {
        struct place *place = &http->places[i];
        if (place->is_busy)
            curl_multi_remove_handle(http->multi, place->easy);
        free_headers(place);
        curl_easy_cleanup(place->easy);
        builder_free(&place->answer);
    }
    http_drop_mails(http);
    curl_multi_cleanup(http->multi);
    free(http);
    curl_global_cleanup();
}

bool http_is_full(const struct http *http)
{
    return http->in_flight == http->parallel;
}

int http_in_flight(const struct http *http)
{
    return http->in_flight;
}

static void add_header(struct place *place, const char *header)
{
    struct curl_slist *longer = curl_slist_append(place->headers, header);
    if (!longer)
        log_fatal("out of memory http");
    place->headers = longer;
}

static void set_request(struct place *place, const struct http_request *request)
{
    for (const char *const *header = request->headers; header && *header; header++)
        add_header(place, *header);
    place->is_plain = strncmp(request->url, "https:", strlen("https:")) != 0;
    curl_easy_setopt(place->easy, CURLOPT_URL, request->url);
    curl_easy_setopt(place->easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    if (request->content_type) {
        char header[256];
        snprintf(header, sizeof header, "Content-Type: %s", request->content_type);
        add_header(place, header);
        add_header(place, "Expect:"); /* the body is sent at once */
        curl_easy_setopt(place->easy, CURLOPT_POST, 1L);
        curl_easy_setopt(place->easy, CURLOPT_POSTFIELDS, request->body.data);
        curl_easy_setopt(place->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.size);
    } else {
        curl_easy_setopt(place->easy, CURLOPT_HTTPGET, 1L);
        curl_easy_setopt(place->easy, CURLOPT_NOBODY, strcmp(request->method, "HEAD") == 0 ? 1L : 0L);
    }
    curl_easy_setopt(place->easy, CURLOPT_CUSTOMREQUEST, request->method);
    curl_easy_setopt(place->easy, CURLOPT_HTTPHEADER, place->headers);
}

void http_send(struct http *http, const struct http_request *request)
{
    assert(!http_is_full(http));
    struct place *place = http->places;
    while (place->is_busy)
        place++;
    builder_clear(&place->answer, 1 << 20);
    place->problem[0] = '\0';
    place->is_too_large = place->is_out_of_reach = false;
    place->owner = request->owner;
    place->is_busy = true;
    http->in_flight++;
    set_request(place, request);
    http_begin(http, place->easy);
}

void http_cancel(struct http *http, const void *owner)
{
    for (int i = 0; i < http->parallel; i++) {
        struct place *place = &http->places[i];
        if (!place->is_busy || place->owner != owner)
            continue;
        curl_multi_remove_handle(http->multi, place->easy);
        free_headers(place);
        place->is_busy = false;
        http->in_flight--;
    }
}

/* Of the last answer; "" when it has none. */
static const char *find_header(CURL *easy, const char *name)
{
    struct curl_header *header;
    return curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK ? header->value : "";
}

static void give_result(struct http *http, struct place *place, CURLcode code, struct http_result *result_r)
{
    long status = 0;
    curl_off_t retry_after_s = 0, length = -1;
    curl_easy_getinfo(place->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(place->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    curl_easy_getinfo(place->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    free_headers(place);
    place->is_busy = false;
    http->in_flight--;
    *result_r = (struct http_result){.owner = place->owner,
                                     .is_too_large = place->is_too_large,
                                     .is_out_of_reach = place->is_out_of_reach,
                                     .retry_after_s = (int64_t)retry_after_s,
                                     .length = (int64_t)length,
                                     .etag = find_header(place->easy, "ETag"),
                                     .problem = "",
                                     .reason = "",
                                     .body = builder_bytes(&place->answer)};
    if (code == CURLE_OK) {
        result_r->status = (int)status;
        return;
    }
    result_r->problem = place->problem[0] ? place->problem : curl_easy_strerror(code);
    result_r->reason = place->is_too_large ? "its answer is too large"
                                           : http_reason(code, "the connection broke or spoke no HTTP");
}

/* Takes the result of a finished request or mail, if there is one. */
static bool take_ended(struct http *http, struct http_result *result_r)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(http->multi, &left));) {
        if (message->msg != CURLMSG_DONE)
            continue;
        char *private;
        CURL *easy = message->easy_handle;
        CURLcode code = message->data.result;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
        curl_multi_remove_handle(http->multi, easy); /* also frees the message */
        if (!http_take_mail(http, easy, code, result_r))
            give_result(http, (struct place *)private, code, result_r);
        return true;
    }
    return false;
}

static bool has_news(const struct curl_waitfd *waits, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (waits[i].revents)
            return true;
    return false;
}

/* Waits for the transfers and for the others; true when one of the others is ready. */
static bool wait_for_all(struct http *http, int64_t wait_ms, struct pollfd *others, size_t count)
{
    struct curl_waitfd waits[HTTP_OTHERS_MAX];
    assert(count <= COUNT_OF(waits));
    for (size_t i = 0; i < count; i++) /* libcurl's bits are those of poll */
        waits[i] = (struct curl_waitfd){
            .fd = others[i].fd,
            .events = (short)((others[i].events & POLLIN ? CURL_WAIT_POLLIN : 0) |
                              (others[i].events & POLLOUT ? CURL_WAIT_POLLOUT : 0)),
        };
    CURLMcode code =
        curl_multi_poll(http->multi, waits, (unsigned)count, wait_ms < 60000 ? (int)wait_ms : 60000, NULL);
    if (code != CURLM_OK)
        log_fatal("libcurl: %s", curl_multi_strerror(code));
    for (size_t i = 0; i < count; i++)
        others[i].revents = (short)((waits[i].revents & CURL_WAIT_POLLIN ? POLLIN : 0) |
                                    (waits[i].revents & CURL_WAIT_POLLOUT ? POLLOUT : 0));
    return has_news(waits, count);
}

void http_flush(struct http *http)
{
    int running;
    CURLMcode code = curl_multi_perform(http->multi, &running);
    if (code != CURLM_OK)
        log_fatal("libcurl: %s", curl_multi_strerror(code));
}

bool http_receive_or(struct http *http, int64_t wait_ms, struct pollfd *others, size_t count,
                     struct http_result *result_r)
{
    int64_t deadline_ms = clock_monotonic_ms() + wait_ms;
    for (;;) {
        http_flush(http);
        if (take_ended(http, result_r))
            return true;
        int64_t left_ms = deadline_ms - clock_monotonic_ms();
        if (left_ms < 0 || (!count && !http->in_flight && !http->mails))
            return false;
        if (wait_for_all(http, left_ms, others, count))
            return false;
        if (!left_ms)
            return false;
    }
}

bool http_receive(struct http *http, int64_t wait_ms, struct http_result *result_r)
{
    return http_receive_or(http, wait_ms, NULL, 0, result_r);
}

void http_run(struct http *http, const struct http_request *request, struct http_result *result_r)
{
    assert(!http->in_flight);
    http_send(http, request);
    while (!http_receive(http, request->timeout_ms, result_r))
        ; /* libcurl ends it at its timeout */
}

/* --- mails --- */

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

static bool http_take_mail(struct http *http, CURL *easy, CURLcode code, struct http_result *result_r)
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

static void http_drop_mails(struct http *http)
{
    while (http->mails) {
        struct mail *mail = http->mails;
        http->mails = mail->next;
        curl_multi_remove_handle(http->multi, mail->easy);
        free_mail(mail);
    }
}
