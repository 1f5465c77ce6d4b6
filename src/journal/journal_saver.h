/* journal_saver: a child process (journal_child.h) that saves records in place of the loop. */
#ifndef STAMPD_JOURNAL_JOURNAL_SAVER_H
#define STAMPD_JOURNAL_JOURNAL_SAVER_H

#include "edge/events.h"
#include "records/records.h"

struct journal_saver;

/* `saved` is called once for each journal_saver_save, from the loop: all changes up to the number are on
 * disk; or they are not, and the log has the reason. */
struct journal_saver *journal_saver_create(struct events *events, struct records *records,
                                           void (*saved)(void *context, uint64_t number, bool is_saved),
                                           void *context) __attribute__((returns_nonnull));
/* Kills the child, which is safe at any moment; does not wait for the disk. */
void journal_saver_destroy(struct journal_saver *saver);
/* A new child, without what the present one has inherited, saves from now on: the present one ends at once,
 * or after what it has begun. */
void journal_saver_retire(struct journal_saver *saver);
/* Also when it is busy: what has come until it begins with the next sync shares it.  A child that has died is
 * replaced, and the new one tries once more. */
void journal_saver_save(struct journal_saver *saver, uint64_t number);

#endif
