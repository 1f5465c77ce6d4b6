/* blob_reseal: encrypts a file of an encrypted namespace again, under the newest data key, while it is
 * served (doc/explanation/encryption.md).
 *
 * The file is decrypted, checked, and written under a key of its own beside the former one; then it takes its
 * place by a rename.  Name and size stay.  A process that dies leaves the former file or the new one, and
 * perhaps an unfinished one, which blob_store_clear finds.
 *
 * A ticket (blob/file_ticket.h) that was given before opens the former file only, so that one stays in the
 * folder `former` for BLOB_FORMER_S, under a name that is made of its salt (blob_store_clear_former). */
#ifndef STAMPD_BLOB_BLOB_RESEAL_H
#define STAMPD_BLOB_BLOB_RESEAL_H

#include "blob/blob_store.h"
#include "blob/file_ticket.h"
#include "seal/sealed_file.h"

enum { BLOB_FORMER_S = 2 * FILE_TICKET_S };

struct blob_resealing;
/* Reads the file of this name and writes it again, durably, beside it.  NULL: it is under the newest key.
 * FAULT_NFILE: there is none.  FAULT_BCONTENT: it was altered, or is under an unknown key, and it was logged.
 */
MUST_USE enum fault blob_reseal_begin(struct blob_store *store, struct bytes database,
                                      const struct sealed_file_keys *keys, const struct blob_digest *name,
                                      struct blob_resealing **resealing_r);
/* The same of a file that an object store has: `read` passes the content of the file of this name, checked,
 * as blob_sealed_read_name.  The directory may have it, too. */
struct blob_source {
    enum fault (*read)(void *source, const struct blob_digest *name,
                       bool (*take)(void *context, struct bytes piece), void *context);
    void *source;
};
MUST_USE enum fault blob_reseal_bring(struct blob_store *store, struct bytes database,
                                      const struct sealed_file_keys *keys, const struct blob_digest *name,
                                      const struct blob_source *from, struct blob_resealing **resealing_r);
/* It takes the place of the former one, durably.  Meanwhile nothing may remove the file. */
MUST_USE enum fault blob_reseal_finish(struct blob_resealing *resealing);
void blob_reseal_abandon(struct blob_resealing *resealing);

/* The open file of this name that the head opens: the present one, or the former one.  FAULT_NFILE. */
MUST_USE enum fault blob_reseal_open(struct blob_store *store, struct bytes database,
                                     const struct blob_digest *name, const struct sealed_file_head *head,
                                     int *fd_r);
#endif
