/* records_save: records that are kept on disk (log/disk_table.h).
 *
 * The memory has all records, of some without their content (records_room.c); the disk has a copy of those
 * that are persisted.  A change of one is made in the memory first, under the lock, and noted there: its keys
 * in a list, under a number that grows with each change.  Whoever needs it on disk calls records_save, which
 * takes the right to write to the disk, reads what the memory has *then* under the keys of the list, of
 * whatever process, writes that as one change, and takes them off the list.  So what the disk has last is
 * what the memory has last; a number is saved when all changes up to it are; one sync serves all who wait;
 * and what a dead process has left unsaved is saved by the next one.
 *
 * The list is read in parts, between which others have the lock.  A change of the disk ends after a part, but
 * only where no change of several keys is further on: the disk has all keys of a RENAME, or none.
 *
 * A process that answers a command waits first.  Others may read a change a moment before it is on disk. */
#ifndef STAMPD_RECORDS_RECORDS_SAVE_H
#define STAMPD_RECORDS_RECORDS_SAVE_H

#include "records/records.h"

/* Names the folder, of at most `bytes`, and brings what it has into the memory, unless a process has done so
 * since the memory was created.  Before anybody else uses the records.  "": none, commands that persist
 * end with RECORDS_NO_DISK.  For records of encrypted namespaces, site_key_load comes first.  False: one
 * line in `problem`; nothing was brought. */
MUST_USE bool records_save_into(struct records *records, const char *folder, size_t bytes, char *problem,
                                size_t problem_size);

/* Waits until all changes up to the number are on disk: found_r->saving of a command, 0 is none.  False: they
 * are not, the log says why; it will be tried again with the next call of anybody. */
MUST_USE bool records_save(struct records *records, uint64_t number);

/* The number up to which something is not on disk, whoever waits for it; 0: nothing, or there is no folder.
 * For records_save. */
uint64_t records_save_number(struct records *records);

/* Saves what nobody waits for: ends that were moved by GET, and what dead processes have left.  To be called
 * every second by one process or more. */
void records_save_rest(struct records *records);

#endif
