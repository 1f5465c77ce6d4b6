/* request_id: the name of a request to which its client gave none.  nginx's token of the request is made of
 * the number of its process, of the connection and of the place in it: from these anybody would read how many
 * connections others make.  So the name is a keyed digest of the token: the same for all workers of one
 * master, also when the request is handed in again, and as unique as the token. */
#ifndef STAMPD_SERVE_REQUEST_ID_H
#define STAMPD_SERVE_REQUEST_ID_H

#include "base/arena.h"
#include "base/bytes.h"

/* Draws the key, once, before the children are forked. */
void request_id_draw_key(void);
/* 32 hexadecimal digits, in the arena. */
const char *request_id_make(struct arena *arena, struct bytes token);

#endif
