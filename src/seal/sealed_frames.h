/* sealed_frames: the bytes of an upload in parts, encrypted as they come (doc/explanation/encryption.md).
 *
 * What lies behind the offset of an upload is cut off and written again, perhaps with other bytes, so the
 * nonce of a frame must not follow from its place: each has a random one of 192 bits (XAES-256-GCM,
 * seal/sealing.h).  With it are authenticated the upload, the offset and the size, so frames cannot be
 * reordered, left out or exchanged. */
#ifndef STAMPD_SEAL_SEALED_FRAMES_H
#define STAMPD_SEAL_SEALED_FRAMES_H

#include "seal/sealed_file.h"

enum { SEALED_FRAME_MOST = 1 << 18, SEALED_FRAME_UPLOAD = 32 };

/* Writes a piece, which begins at this offset of the clear bytes, at the position of the descriptor.  False:
 * errno has the cause. */
MUST_USE bool sealed_frames_write(int fd, const struct sealed_file_keys *keys, struct bytes upload,
                                  int64_t offset, struct bytes piece);
/* Reads the frames of the whole file, of `size` clear bytes together; `take` returns false to end early. */
MUST_USE enum sealed_file_state sealed_frames_read(int fd, const struct sealed_file_keys *keys,
                                                   struct bytes upload, int64_t size,
                                                   bool (*take)(void *context, struct bytes piece),
                                                   void *context);

#endif
