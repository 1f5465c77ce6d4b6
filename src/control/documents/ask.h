/* ask: one request of an operation, sent again until the server can answer it. */
#ifndef STAMPD_CONTROL_DOCUMENTS_ASK_H
#define STAMPD_CONTROL_DOCUMENTS_ASK_H

#include "control/control.h"
#include "edge/http.h"

/* Posts the JSON body; tries for `retry_s` seconds.  False: failed, which is reported for `command`. */
MUST_USE bool ask_server(struct control *control, struct http *http, const char *url, struct bytes body,
                         int64_t retry_s, const char *command, struct http_result *result_r);
/* Is it a JSON text? */
bool ask_is_json(struct arena *arena, const char *text);
/* The member `out` of the answer, with a tree of `levels` below it; NULL: there is none. */
const struct json *ask_out(struct arena *arena, struct bytes answer, int levels);
/* Prints a JSON text on one line. */
void ask_print(struct bytes text);

#endif
