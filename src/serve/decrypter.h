/* decrypter: the process that sends files of encrypted namespaces to nginx, in clear
 * (doc/explanation/encryption.md).
 *
 * A worker judges the download and gives nginx a ticket (blob/file_ticket.h); nginx sends it here, over a
 * Unix socket.  One process serves all downloads, without a thread for each: it decrypts the next chunk when
 * the former one was sent, so that a slow client costs a descriptor and one chunk.  It has no session of a
 * database.  The bytes of a file in an object store come by a process that requests them (object_pipe.h).  A
 * file that was altered or cut off ends the download there: nothing but what was stored is ever
 * sent. */
#ifndef STAMPD_SERVE_DECRYPTER_H
#define STAMPD_SERVE_DECRYPTER_H

#include "serve/heritage.h"

/* Runs until it is signalled to stop, and its downloads have ended; returns the exit status. */
int decrypter_run(const struct heritage *heritage);

#endif
