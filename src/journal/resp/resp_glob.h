/* resp_glob: the patterns of Redis: `*`, `?`, `[a-c]`, `[^a]`, and a backslash before a byte that is meant.
 */
#ifndef STAMPD_JOURNAL_RESP_RESP_GLOB_H
#define STAMPD_JOURNAL_RESP_RESP_GLOB_H

#include "base/bytes.h"

enum { RESP_GLOB_MOST = 2048 }; /* bytes of a pattern; longer ones are refused by those who take them */

/* Takes one step for each byte that is compared from `steps`.  False also when these do not suffice: without
 * that, a pattern with many stars costs as much as its length times that of the text. */
bool resp_glob_matches(struct bytes pattern, struct bytes text, int64_t *steps);
/* The bytes with which all texts that match begin, in `prefix_r`, of the size of the pattern; how many. */
size_t resp_glob_prefix(struct bytes pattern, char *prefix_r);

#endif
