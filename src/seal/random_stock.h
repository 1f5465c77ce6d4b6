/* random_stock: random bytes for nonces, drawn a page at a time: a draw of a few bytes costs nearly what one
 * of a page does.
 *
 * No two calls return the same bytes, in any process: those that are taken are erased, and the kernel gives a
 * forked child an empty page in place of the stock (MADV_WIPEONFORK).  Where it does not, there is no stock.
 * For processes with one thread. */
#ifndef STAMPD_SEAL_RANDOM_STOCK_H
#define STAMPD_SEAL_RANDOM_STOCK_H

#include <stddef.h>

/* Ends the process if the system has no random bytes. */
void random_stock_take(void *buffer, size_t size);

#endif
