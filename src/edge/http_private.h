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

/* If the finished transfer was a mail, writes its result and returns true. */
bool http_take_mail(struct http *http, CURL *easy, CURLcode code, struct http_result *result_r);
void http_drop_mails(struct http *http);

#endif
