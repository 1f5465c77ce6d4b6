/* records_rekey: another key for the folder of the records (doc/explanation/encryption.md).
 *
 * The next key is in the file `key.next` (records_seal.h) until all records are under it; then it takes the
 * place of `key`.  Processes that have the folder open have the present key only, so this happens when a
 * process brings the records into a memory that none has filled: then there are no others.  Each part is one
 * change of the disk, whole or not at all: a process that dies leaves records of both keys, each once, and
 * the next one goes on.  As records get other places, a part may change every page of the table: so parts are
 * large, and smaller ones are tried only where the table has no room for them. */
#ifndef STAMPD_RECORDS_RECORDS_REKEY_H
#define STAMPD_RECORDS_RECORDS_REKEY_H

#include "base/builder.h"

struct disk_table;

/* How far it has come; zeros: nothing was done.  It need not be kept: another one begins at the first record,
 * and passes those that are done. */
struct records_rekey {
    struct builder from; /* the place where it goes on; empty: at the first */
    struct builder opened, sealed, changes;
    uint64_t count, last; /* of records, by this process; and by its last part */
    int narrowed;         /* how often parts were made smaller */
};

/* Bytes of a part, until they are made smaller; tests have other ones. */
extern size_t records_rekey_part;

/* Within a change of the disk, before the records are brought into the memory: encrypts some records again,
 * or, when none is left, replaces the key.  `is_more_r`: it was one of the two, and the change is to be
 * committed, and another one begun; false: there is no next key.  Returns NULL, or why it failed. */
MUST_USE const char *records_rekey_some(struct records_rekey *rekey, struct disk_table *disk,
                                        const char *folder, bool *is_more_r);
/* Of what has failed, in records_rekey_some or with the commit behind it, when the change has been abandoned.
 * NULL: there was too little room, and records_rekey_some is to be called again, for a smaller part. */
MUST_USE const char *records_rekey_retry(struct records_rekey *rekey, const char *error);
void records_rekey_free(struct records_rekey *rekey);

#endif
