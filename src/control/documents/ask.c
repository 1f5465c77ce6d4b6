/* ask: see the header. */
#include "control/documents/ask.h"

#include <stdio.h>

#include "base/clock.h"
#include "control/answer.h"
#include "control/backoff.h"
#include "control/message.h"
#include "edge/json/json.h"

enum { REQUEST_MS = 300 * 1000, DEPTH_MOST = 256 };

bool ask_server(struct control *control, struct http *http, const char *url, struct bytes body,
                int64_t retry_s, const char *command, struct http_result *result_r)
{
    struct backoff backoff = {0};
    struct server_answer answer;
    bool goes_on = true;
    enum answer_kind kind;
    do {
        if (backoff.tries)
            clock_sleep_ms(backoff.due_ms - clock_monotonic_ms());
        http_run(http,
                 &(struct http_request){.method = "POST",
                                        .url = url,
                                        .content_type = "application/json",
                                        .body = body,
                                        .timeout_ms = REQUEST_MS},
                 result_r);
        kind = answer_read(control->arena, result_r, &answer);
        if (kind == ANSWER_AGAIN)
            goes_on = backoff_goes_on(&backoff, retry_s);
    } while (kind == ANSWER_AGAIN && goes_on);
    if (kind != ANSWER_DONE)
        message_print("%s: %s%s%s", command, answer.code, *answer.code ? " " : "", answer.words);
    return kind == ANSWER_DONE;
}

bool ask_is_json(struct arena *arena, const char *text)
{
    struct json *root;
    return json_is_tree(arena, bytes_of(text), DEPTH_MOST, 1, &root);
}

const struct json *ask_out(struct arena *arena, struct bytes answer, int levels)
{
    const struct json_limits limits = {.depth = DEPTH_MOST, .tree_depth = 1 + levels};
    struct json_problem problem;
    struct json *root;
    return json_read(arena, answer, &limits, &root, &problem) ? NULL : json_member(root, "out");
}

/* A JSON string has no line end: line ends are between members. */
void ask_print(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        putchar(text.data[i] == '\n' || text.data[i] == '\r' ? ' ' : text.data[i]);
    putchar('\n');
}
