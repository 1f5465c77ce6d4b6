/* resp_scan: SCAN, in the order of the keys, and its cursors.
 *
 * Clients of Redis take a cursor for an integer of 53 bits, which no key is: the daemon remembers the last
 * key of a page. A scan has one place, with the last key of its last two pages, so that a page can be
 * requested again.  Each key of the file has a few places, and takes none of others: the scan that was used
 * longest ago is forgotten. */
#ifndef STAMPD_JOURNAL_RESP_RESP_SCAN_H
#define STAMPD_JOURNAL_RESP_RESP_SCAN_H

#include "base/bytes.h"
#include "journal/resp/resp_session.h"

enum { RESP_CURSORS_MOST = 16 }; /* scans of one key of the file */

struct resp_cursors *resp_scan_open(void) __attribute__((returns_nonnull));
/* The keys of the file are others now. */
void resp_scan_forget(struct resp_cursors *cursors);
void resp_scan_close(struct resp_cursors *cursors); /* NULL is allowed */

/* The cursor behind this key; `former`: of the page before, 0: it was the first one.  Up to 53 bits, not 0.
 */
uint64_t resp_scan_note(struct resp_cursors *cursors, size_t owner, uint64_t former, struct bytes last);
/* False: it is not known, or not any more. */
MUST_USE bool resp_scan_find(struct resp_cursors *cursors, size_t owner, uint64_t cursor,
                             struct bytes *last_r);

resp_function resp_scan;

/* The patterns of Redis: `*`, `?`, `[a-c]`, `[^a]`, and a backslash before a byte that is meant.
 */

enum { RESP_GLOB_MOST = 2048 }; /* bytes of a pattern; longer ones are refused by those who take them */

/* Takes one step for each byte that is compared from `steps`.  False also when these do not suffice: without
 * that, a pattern with many stars costs as much as its length times that of the text. */
bool resp_glob_matches(struct bytes pattern, struct bytes text, int64_t *steps);
/* The bytes with which all texts that match begin, in `prefix_r`, of the size of the pattern; how many. */
size_t resp_glob_prefix(struct bytes pattern, char *prefix_r);

#endif
