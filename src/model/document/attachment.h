/* attachment: the content of an item of class P: a file of a document (doc/reference/attachments.md).
 *
 * The key of the item names the attachment; its content is the JSON {"mime":…,"size":…,"sha":…}, in this form
 * only, and describes bytes that the store has under their SHA-256 (blob/blob_store.h).  Pure. */
#ifndef STAMPD_MODEL_DOCUMENT_ATTACHMENT_H
#define STAMPD_MODEL_DOCUMENT_ATTACHMENT_H

#include "base/arena.h"
#include "blob/blob_store.h"

#define ATTACHMENT_CLASS BYTES("P")

enum { ATTACHMENT_MIME_MOST = 255 };

struct attachment {
    struct bytes mime; /* type/subtype, parameters, at the end perhaps one of .g .c .gc */
    int64_t size;      /* bytes of the file */
    struct blob_digest digest;
};

/* Is it printable ASCII of 1 to ATTACHMENT_MIME_MOST bytes with a slash between two names?  Nothing else is
 * checked: the client may call its file what it likes. */
MUST_USE bool attachment_is_mime(struct bytes mime);
/* The content of the item, in the arena. */
struct bytes attachment_write(struct arena *arena, const struct attachment *attachment);
/* False: not a content that attachment_write writes.  Borrows the content. */
MUST_USE bool attachment_read(struct arena *arena, struct bytes content, struct attachment *attachment_r);
/* The size alone, at the cost of a few digits; 0: not such a content. */
int64_t attachment_size(struct bytes content);

/* How the client has changed the bytes before it sent them: the end of the media type. */
struct attachment_form {
    struct bytes type; /* without the end */
    bool is_gzipped, is_encrypted;
};
struct attachment_form attachment_form(struct bytes mime);

#endif
