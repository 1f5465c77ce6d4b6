/* thumbnails: which attachments of a document are thumbnails, of which others some are missing, and which
 * have lost their image (doc/reference/attachments.md, "Thumbnails").
 *
 * A thumbnail is an item P whose key is that of its image, a '~' and the name that the schema gives it; its
 * media type says which box it fits in, and the digest of the image that it was made of.  So a document alone
 * shows what is missing, wherever it comes from.  Pure: no I/O. */
#ifndef STAMPD_MODEL_DOCUMENT_THUMBNAILS_H
#define STAMPD_MODEL_DOCUMENT_THUMBNAILS_H

#include "base/settings.h"
#include "model/document/attachment.h"
#include "model/document/draft.h"
#include "model/schema/schema.h"
#include "model/task/task.h"

/* The operation that makes them; its task has the document as `c` and `id` of its argument. */
#define THUMBNAILS_OPERATION "thumbnail"
/* Its queue: a decoder takes seconds, in which the process that waits for it serves nobody else. */
enum { THUMBNAILS_QUEUE = 2 };
/* The operation that finds documents without them. */
#define THUMBNAILS_SWEEP "thumbnailsweep"

/* An attachment of a document. */
struct thumbnails_file {
    struct bytes key;
    struct attachment attachment;
    bool is_marked;           /* its type and its key are those of a thumbnail */
    struct bytes image, name; /* if is_marked: the parts of its key */
    struct blob_digest of;    /* if is_marked: the image that it was made of */
    int64_t width, height;    /* if is_marked: the box */
};

struct thumbnails_list {
    struct thumbnails_file *files; /* in the order of their keys */
    size_t count;
};

/* The attachments of a document, or of a draft; in the arena, texts are borrowed. */
struct thumbnails_list thumbnails_of_document(struct arena *arena, const struct document *document);
struct thumbnails_list thumbnails_of_draft(struct arena *arena, const struct draft *draft);

/* Is it of a type that thumbnails are made of? */
bool thumbnails_is_image(struct bytes mime);
/* The key and the media type of a thumbnail of this image; in the arena. */
struct bytes thumbnails_key(struct arena *arena, struct bytes key, struct bytes name);
struct bytes thumbnails_mime(struct arena *arena, const struct schema_thumbnail *thumbnail,
                             const struct blob_digest *image);
/* The type without what marks a thumbnail. */
struct bytes thumbnails_plain_mime(struct bytes mime);
/* Does the class reserve the key for a thumbnail? */
bool thumbnails_is_reserved(const struct schema_class *class, struct bytes key);

/* The thumbnails of an image that its document lacks: the number of names in `missing_r`, which has room for
 * SCHEMA_THUMBNAILS_MOST.  0: it has all, it is no image, or it is itself a thumbnail.  A key that another
 * file has, or that is longer than `key_most`, is left out. */
size_t thumbnails_missing(struct arena *arena, const struct schema_class *class,
                          const struct thumbnails_list *list, const struct thumbnails_file *file,
                          size_t key_most, const struct schema_thumbnail *missing_r[SCHEMA_THUMBNAILS_MOST]);
/* Is it a thumbnail whose image is gone or has another file, or that is no longer declared? */
bool thumbnails_is_stale(const struct schema_class *class, const struct thumbnails_list *list,
                         const struct thumbnails_file *file);

/* Removes from a draft the thumbnails that have lost their image.  Returns whether its changes need the task:
 * there is a new image, or a thumbnail of one was removed. */
bool thumbnails_follow(struct arena *arena, const struct schema_class *class, struct draft *draft);

/* The declaration of a class as a text: equal for equal names and boxes; in the arena. */
struct bytes thumbnails_form(struct arena *arena, const struct schema_class *class);

#endif
