/* upload_metadata: the header Upload-Metadata of the tus protocol: names with values in base64. */
#ifndef STAMPD_MODEL_DOCUMENT_UPLOAD_METADATA_H
#define STAMPD_MODEL_DOCUMENT_UPLOAD_METADATA_H

#include "base/arena.h"
#include "base/bytes.h"

enum { UPLOAD_METADATA_MOST = 4096 };

/* The attachment that the upload becomes. */
struct upload_metadata {
    struct bytes class, id, key;
    struct bytes mime; /* empty: not named */
};

/* Names that it does not know are ignored; a known one with an empty value, or none, counts as absent, since
 * clients send "filetype" empty for files of unknown type; `filename` is the key when there is no `key`.
 * False: it is malformed, a name stands twice, or class, id or key is missing, empty, or not UTF-8 without
 * NUL. */
MUST_USE bool upload_metadata_read(struct arena *arena, struct bytes text,
                                   struct upload_metadata *metadata_r);

#endif
