/* request_id: makes an id for a request whose client sent none. nginx's token of the request consists of the
 * numbers of the process, the connection and the request in it, which would reveal how many connections other
 * clients make.  So the id is a keyed digest of the token: the same in all workers of one master and at a
 * redelivery, and as unique as the token. */
#ifndef STAMPD_HTTP_REQUEST_ID_H
#define STAMPD_HTTP_REQUEST_ID_H

#include "base/arena.h"
#include "base/bytes.h"

/* Generates the key; called once, before the children are forked. */
void request_id_draw_key(void);
/* 32 hexadecimal digits, in the arena. */
const char *request_id_make(struct arena *arena, struct bytes token);

#endif
