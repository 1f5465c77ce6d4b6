/* http_private: internals of a client, for src/edge/http*.c only; the only file that includes libcurl. */
#ifndef STAMPD_EDGE_HTTP_PRIVATE_H
#define STAMPD_EDGE_HTTP_PRIVATE_H

#include <curl/curl.h>

#include "base/builder.h"
#include "base/log.h"
#include "edge/http.h"

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
static inline void http_begin(struct http *http, CURL *easy)
{
    CURLMcode code = curl_multi_add_handle(http->multi, easy);
    if (code != CURLM_OK)
        log_fatal("libcurl: %s", curl_multi_strerror(code));
}

/* The member `reason` of a result; `otherwise`: for a code without words of its own. */
static inline const char *http_reason(CURLcode code, const char *otherwise)
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
bool http_take_mail(struct http *http, CURL *easy, CURLcode code, struct http_result *result_r);
void http_drop_mails(struct http *http);

#endif
