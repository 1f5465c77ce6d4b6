/* sealed_frames: id of the key, size, nonce, the encrypted bytes and their tag. */
#include "seal/sealed_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "edge/crypto/crypto.h"

enum { HEAD = 16, WHERE = SEALED_FRAME_UPLOAD + 16, BEFORE = HEAD + SEALING_NONCE };

struct sealed_frame {
    unsigned char bytes[BEFORE + SEALED_FRAME_MOST + SEALING_TAG];
    unsigned char clear[SEALED_FRAME_MOST];
};

static struct sealed_frame *make_frame(void)
{
    struct sealed_frame *frame = memory_grown(NULL, 1, sizeof *frame, "sealed frame");
    return frame;
}

static void free_frame(struct sealed_frame *frame)
{
    explicit_bzero(frame->clear, sizeof frame->clear);
    free(frame);
}

/* A key for frames only. */
static void sealed_frames_derive(const struct sealing_keys *keys, unsigned char key_r[SEALING_KEY])
{
    crypto_derive(BYTES(""), (struct bytes){(const char *)keys->files, SEALING_KEY}, BYTES("stampd parts"),
                  key_r, SEALING_KEY);
}

static struct bytes write_place(struct bytes upload, int64_t offset, size_t size,
                                unsigned char place_r[WHERE])
{
    assert(upload.size == SEALED_FRAME_UPLOAD);
    memcpy(place_r, upload.data, SEALED_FRAME_UPLOAD);
    bytes_put_u64(place_r + SEALED_FRAME_UPLOAD, (uint64_t)offset);
    bytes_put_u64(place_r + SEALED_FRAME_UPLOAD + 8, size);
    return (struct bytes){(const char *)place_r, WHERE};
}

static bool write_frame(int fd, const struct sealing_keys *keys, struct sealed_frame *frame,
                        struct bytes upload, int64_t offset, struct bytes piece)
{
    unsigned char place[WHERE], key[SEALING_KEY];
    bytes_put_u64(frame->bytes, (uint64_t)keys->id);
    bytes_put_u64(frame->bytes + 8, piece.size);
    crypto_random(frame->bytes + HEAD, SEALING_NONCE);
    sealed_frames_derive(keys, key);
    sealing_encrypt(key, frame->bytes + HEAD, write_place(upload, offset, piece.size, place), piece,
                    frame->bytes + BEFORE);
    explicit_bzero(key, sizeof key);
    return bytes_write(fd, (struct bytes){(const char *)frame->bytes, BEFORE + piece.size + SEALING_TAG});
}

bool sealed_frames_write(int fd, const struct sealed_file_keys *keys, struct bytes upload, int64_t offset,
                         struct bytes piece)
{
    struct sealed_frame *frame = make_frame();
    bool is_done = true;
    while (piece.size && is_done) {
        struct bytes part = {piece.data, piece.size < SEALED_FRAME_MOST ? piece.size : SEALED_FRAME_MOST};
        is_done = write_frame(fd, &keys->keys[keys->count - 1], frame, upload, offset, part);
        offset += (int64_t)part.size;
        piece = (struct bytes){piece.data + part.size, piece.size - part.size};
    }
    free_frame(frame);
    return is_done;
}

/* --- reading --- */

/* The clear bytes of the frame at `at` are in the frame. */
static enum sealed_file_state read_frame(int fd, const struct sealed_file_keys *keys,
                                         struct sealed_frame *frame, struct bytes upload, int64_t at,
                                         int64_t offset, size_t *size_r)
{
    unsigned char place[WHERE], key[SEALING_KEY];
    ssize_t got = bytes_read_at(fd, frame->bytes, BEFORE, at);
    if (got < 0)
        return SEALED_FILE_FAILED;
    uint64_t size = got < BEFORE ? 0 : bytes_get_u64(frame->bytes + 8);
    if (!size || size > SEALED_FRAME_MOST)
        return SEALED_FILE_ALTERED;
    got = bytes_read_at(fd, frame->bytes + BEFORE, (size_t)size + SEALING_TAG, at + BEFORE);
    if (got < 0)
        return SEALED_FILE_FAILED;
    if ((size_t)got < size + SEALING_TAG)
        return SEALED_FILE_ALTERED;
    const struct sealing_keys *of_frame =
        sealing_find(keys->keys, keys->count, (int64_t)bytes_get_u64(frame->bytes));
    if (!of_frame)
        return SEALED_FILE_UNKNOWN;
    sealed_frames_derive(of_frame, key);
    bool is_open = sealing_decrypt(
        key, frame->bytes + HEAD, write_place(upload, offset, (size_t)size, place),
        (struct bytes){(const char *)frame->bytes + BEFORE, (size_t)size + SEALING_TAG}, frame->clear);
    explicit_bzero(key, sizeof key);
    *size_r = (size_t)size;
    return is_open ? SEALED_FILE_FINE : SEALED_FILE_ALTERED;
}

enum sealed_file_state sealed_frames_read(int fd, const struct sealed_file_keys *keys, struct bytes upload,
                                          int64_t size, bool (*take)(void *context, struct bytes piece),
                                          void *context)
{
    struct sealed_frame *frame = make_frame();
    enum sealed_file_state state = SEALED_FILE_FINE;
    int64_t at = 0, offset = 0;
    bool is_wanted = true;
    while (offset < size && is_wanted && state == SEALED_FILE_FINE) {
        size_t clear = 0;
        state = read_frame(fd, keys, frame, upload, at, offset, &clear);
        if (state != SEALED_FILE_FINE)
            break;
        if ((int64_t)clear > size - offset) {
            state = SEALED_FILE_ALTERED;
            break;
        }
        is_wanted = take(context, (struct bytes){(const char *)frame->clear, clear});
        at += BEFORE + (int64_t)clear + SEALING_TAG;
        offset += (int64_t)clear;
    }
    free_frame(frame);
    return state;
}
