/* build: the build number of a namespace: the version of the item Build of its configuration, which moves
 * when something changes that pages of the namespace were made with: label, theme, options, a file.  That of
 * z counts for all. */
#ifndef STAMPD_OPERATION_DOCUMENTS_BUILD_H
#define STAMPD_OPERATION_DOCUMENTS_BUILD_H

#include "operation/attempt.h"

/* Moves it, whatever has changed; `draft` is the namespace's configuration. */
void build_move(struct attempt *attempt, struct draft *draft);
/* Moves it if the draft has another label, theme or options than before. */
void build_note(struct attempt *attempt, struct draft *draft);

#endif
