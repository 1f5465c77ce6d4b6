/* file_ticket: the decision of a worker that a file of an encrypted namespace may be read, and the key of
 * this file, for the decrypter (serve/decrypter.h).
 *
 * A ticket is sealed under the site key: nginx, which carries it, and whoever sees it there can neither read
 * nor make one.  It opens one file, for a time in which nginx begins to request it. */
#ifndef STAMPD_BLOB_FILE_TICKET_H
#define STAMPD_BLOB_FILE_TICKET_H

#include "blob/blob_store.h"
#include "seal/sealed_file.h"

enum { FILE_TICKET_S = 60, FILE_TICKET_DATABASE = 63, FILE_TICKET_STORE = 63, FILE_TICKET_OBJECT = 191 };

struct file_ticket {
    struct bytes database;
    struct blob_digest name; /* of the file in the store */
    struct sealed_file_head head;
    const char *store, *object; /* which object of which store has it; "": the directory has it */
};

/* In the arena.  There must be a site key, and the texts have the sizes above at most. */
const char *file_ticket_write(struct arena *arena, const struct file_ticket *ticket);
/* False: it is no ticket, or too old. */
MUST_USE bool file_ticket_read(struct arena *arena, struct bytes text, struct file_ticket *ticket_r);

#endif
