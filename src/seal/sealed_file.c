/* sealed_file: one cipher context, chunk by chunk. */
#include "seal/sealed_file.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "edge/crypto/crypto.h"
#include "edge/crypto/crypto_private.h"
#include "edge/crypto/gcm_private.h"

enum { MARK = 8, ID = 8, CHECK = 32, SEALED_CHUNK = SEALED_FILE_CHUNK + SEALING_TAG };

/* The last byte is the version. */
static const char mark[MARK] = "stampdF\001";

struct sealed_file_writer {
    int fd;
    struct sealing_keys keys;
    struct sealed_file_head head;
    EVP_CIPHER_CTX *context;
    uint64_t number; /* of the next chunk */
    size_t size;     /* of the clear chunk */
    bool has_room;   /* for the header */
    unsigned char clear[SEALED_FILE_CHUNK], sealed[SEALED_CHUNK];
};

struct sealed_file_reader {
    int fd;
    struct sealed_file_head head;
    EVP_CIPHER_CTX *context;
    unsigned char clear[SEALED_FILE_CHUNK], sealed[SEALED_CHUNK];
};

static void *sealed_file_allocate(size_t size)
{
    void *memory = memory_zeroed(1, size, "sealed file");
    return memory;
}

static struct bytes bytes_at(const unsigned char *data, size_t size)
{
    return (struct bytes){(const char *)data, size};
}

/* --- sizes and names --- */

/* Also an empty file has one chunk. */
static uint64_t chunks_of(int64_t clear)
{
    return clear ? ((uint64_t)clear + SEALED_FILE_CHUNK - 1) / SEALED_FILE_CHUNK : 1;
}

int64_t sealed_file_size(int64_t clear)
{
    return SEALED_FILE_HEADER + clear + (int64_t)chunks_of(clear) * SEALING_TAG;
}

int64_t sealed_file_clear_size(int64_t size)
{
    int64_t rest = size - SEALED_FILE_HEADER, chunks = (rest + SEALED_CHUNK - 1) / SEALED_CHUNK;
    int64_t clear = rest - chunks * SEALING_TAG;
    return rest >= SEALING_TAG && clear >= 0 && sealed_file_size(clear) == size ? clear : -1;
}

void sealed_file_name(const struct sealed_file_keys *keys, const unsigned char digest[SEALED_FILE_NAME],
                      unsigned char name_r[SEALED_FILE_NAME])
{
    unsigned char key[SEALING_KEY];
    const struct sealing_keys *first = keys->keys;
    crypto_derive(BYTES(""), bytes_at(first->files, SEALING_KEY), BYTES("stampd file name"), key, sizeof key);
    crypto_hmac(bytes_at(key, sizeof key), bytes_at(digest, SEALED_FILE_NAME), name_r);
    OPENSSL_cleanse(key, sizeof key);
}

/* --- keys, nonces, the check --- */

static void sealed_file_derive(const struct sealing_keys *keys, struct sealed_file_head *head)
{
    crypto_derive(bytes_at(head->bound + MARK + ID, SEALED_FILE_SALT), bytes_at(keys->files, SEALING_KEY),
                  BYTES("stampd file"), head->key, SEALING_KEY);
}

static void compute_check(const struct sealing_keys *keys, const struct sealed_file_head *head,
                          const unsigned char name[SEALED_FILE_NAME], unsigned char check_r[CHECK])
{
    unsigned char key[SEALING_KEY], text[SEALED_FILE_BOUND + SEALED_FILE_NAME + 8];
    memcpy(text, head->bound, SEALED_FILE_BOUND);
    memcpy(text + SEALED_FILE_BOUND, name, SEALED_FILE_NAME);
    bytes_put_u64(text + SEALED_FILE_BOUND + SEALED_FILE_NAME, (uint64_t)head->size);
    crypto_derive(BYTES(""), bytes_at(keys->files, SEALING_KEY), BYTES("stampd file check"), key, sizeof key);
    crypto_hmac(bytes_at(key, sizeof key), bytes_at(text, sizeof text), check_r);
    OPENSSL_cleanse(key, sizeof key);
}

static void make_nonce(uint64_t number, bool is_last, unsigned char nonce_r[GCM_NONCE])
{
    memset(nonce_r, 0, GCM_NONCE);
    bytes_put_u64(nonce_r + GCM_NONCE - 9, number);
    nonce_r[GCM_NONCE - 1] = is_last;
}

static EVP_CIPHER_CTX *make_context(void)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    crypto_must(context != NULL);
    return context;
}

/* --- writing --- */

struct sealed_file_writer *sealed_file_create(int fd, const struct sealed_file_keys *keys)
{
    struct sealed_file_writer *writer = sealed_file_allocate(sizeof *writer);
    writer->fd = fd;
    writer->keys = keys->keys[keys->count - 1];
    memcpy(writer->head.bound, mark, MARK);
    bytes_put_u64(writer->head.bound + MARK, (uint64_t)writer->keys.id);
    crypto_random(writer->head.bound + MARK + ID, SEALED_FILE_SALT);
    sealed_file_derive(&writer->keys, &writer->head);
    writer->context = make_context();
    return writer;
}

/* Nothing marks the file as one before it is finished. */
static bool leave_room(struct sealed_file_writer *writer)
{
    static const unsigned char nothing[SEALED_FILE_HEADER];
    writer->has_room = writer->has_room || bytes_write(writer->fd, bytes_at(nothing, sizeof nothing));
    return writer->has_room;
}

static bool write_chunk(struct sealed_file_writer *writer, bool is_last)
{
    unsigned char nonce[GCM_NONCE];
    if (!leave_room(writer))
        return false;
    make_nonce(writer->number++, is_last, nonce);
    gcm_encrypt(writer->context, EVP_aes_256_gcm(), writer->head.key, nonce,
                bytes_at(writer->head.bound, SEALED_FILE_BOUND), bytes_at(writer->clear, writer->size),
                writer->sealed);
    struct bytes sealed = bytes_at(writer->sealed, writer->size + SEALING_TAG);
    writer->size = 0;
    return bytes_write(writer->fd, sealed);
}

bool sealed_file_write(struct sealed_file_writer *writer, struct bytes piece)
{
    while (piece.size) {
        if (writer->size == SEALED_FILE_CHUNK && !write_chunk(writer, false))
            return false;
        size_t room = SEALED_FILE_CHUNK - writer->size, part = piece.size < room ? piece.size : room;
        memcpy(writer->clear + writer->size, piece.data, part);
        writer->size += part;
        writer->head.size += (int64_t)part;
        piece = (struct bytes){piece.data + part, piece.size - part};
    }
    return true;
}

bool sealed_file_finish(struct sealed_file_writer *writer, const unsigned char name[SEALED_FILE_NAME])
{
    unsigned char header[SEALED_FILE_HEADER];
    if (!write_chunk(writer, true))
        return false;
    memcpy(header, writer->head.bound, SEALED_FILE_BOUND);
    compute_check(&writer->keys, &writer->head, name, header + SEALED_FILE_BOUND);
    return bytes_write_at(writer->fd, bytes_at(header, sizeof header), 0);
}

void sealed_file_destroy(struct sealed_file_writer *writer)
{
    if (!writer)
        return;
    EVP_CIPHER_CTX_free(writer->context);
    OPENSSL_cleanse(writer, sizeof *writer);
    free(writer);
}

/* --- reading --- */

int64_t sealed_file_key_id(const struct sealed_file_head *head)
{
    return (int64_t)bytes_get_u64(head->bound + MARK);
}

enum sealed_file_state sealed_file_check(const unsigned char header[SEALED_FILE_HEADER], int64_t stored,
                                         const struct sealed_file_keys *keys,
                                         const unsigned char name[SEALED_FILE_NAME],
                                         struct sealed_file_head *head_r)
{
    unsigned char check[CHECK];
    memcpy(head_r->bound, header, SEALED_FILE_BOUND);
    head_r->size = sealed_file_clear_size(stored);
    if (head_r->size < 0 || memcmp(header, mark, MARK) != 0)
        return SEALED_FILE_ALTERED;
    const struct sealing_keys *of_file = sealing_find(keys->keys, keys->count, sealed_file_key_id(head_r));
    if (!of_file)
        return SEALED_FILE_UNKNOWN;
    compute_check(of_file, head_r, name, check);
    if (CRYPTO_memcmp(check, header + SEALED_FILE_BOUND, CHECK) != 0)
        return SEALED_FILE_ALTERED;
    sealed_file_derive(of_file, head_r);
    return SEALED_FILE_FINE;
}

enum sealed_file_state sealed_file_begin(int fd, const struct sealed_file_keys *keys,
                                         const unsigned char name[SEALED_FILE_NAME],
                                         struct sealed_file_head *head_r)
{
    unsigned char header[SEALED_FILE_HEADER];
    struct stat status;
    ssize_t size = bytes_read_at(fd, header, sizeof header, 0);
    if (size < 0 || fstat(fd, &status) != 0)
        return SEALED_FILE_FAILED;
    return size < SEALED_FILE_HEADER ? SEALED_FILE_ALTERED
                                     : sealed_file_check(header, status.st_size, keys, name, head_r);
}

struct sealed_file_reader *sealed_file_open(int fd, const struct sealed_file_head *head)
{
    struct sealed_file_reader *reader = sealed_file_allocate(sizeof *reader);
    reader->fd = fd;
    reader->head = *head;
    reader->context = make_context();
    return reader;
}

void sealed_file_turn(struct sealed_file_reader *reader, int fd, const struct sealed_file_head *head)
{
    reader->fd = fd;
    reader->head = *head;
}

/* At the end of the content the last chunk is checked too: so an empty file is. */
static uint64_t find_chunk(const struct sealed_file_head *head, int64_t at, bool *is_last_r, size_t *clear_r)
{
    uint64_t count = chunks_of(head->size);
    assert(at >= 0 && at <= head->size);
    uint64_t number = at == head->size ? count - 1 : (uint64_t)at / SEALED_FILE_CHUNK;
    *is_last_r = number == count - 1;
    *clear_r = *is_last_r ? (size_t)(head->size - (int64_t)number * SEALED_FILE_CHUNK) : SEALED_FILE_CHUNK;
    return number;
}

void sealed_file_find_chunk(const struct sealed_file_head *head, int64_t at, int64_t *from_r, size_t *size_r)
{
    bool is_last;
    size_t clear;
    *from_r = SEALED_FILE_HEADER + (int64_t)find_chunk(head, at, &is_last, &clear) * SEALED_CHUNK;
    *size_r = clear + SEALING_TAG;
}

enum sealed_file_state sealed_file_open_chunk(struct sealed_file_reader *reader, int64_t at,
                                              struct bytes sealed, struct bytes *piece_r)
{
    unsigned char nonce[GCM_NONCE];
    bool is_last;
    size_t clear;
    uint64_t number = find_chunk(&reader->head, at, &is_last, &clear);
    size_t before = (size_t)(at - (int64_t)number * SEALED_FILE_CHUNK);
    *piece_r = BYTES("");
    make_nonce(number, is_last, nonce);
    if (sealed.size != clear + SEALING_TAG ||
        !gcm_decrypt(reader->context, EVP_aes_256_gcm(), reader->head.key, nonce,
                     bytes_at(reader->head.bound, SEALED_FILE_BOUND), sealed, reader->clear))
        return SEALED_FILE_ALTERED;
    *piece_r = bytes_at(reader->clear + before, clear - before);
    return SEALED_FILE_FINE;
}

enum sealed_file_state sealed_file_read(struct sealed_file_reader *reader, int64_t at, struct bytes *piece_r)
{
    int64_t from;
    size_t wanted;
    sealed_file_find_chunk(&reader->head, at, &from, &wanted);
    ssize_t size = bytes_read_at(reader->fd, reader->sealed, wanted, from);
    *piece_r = BYTES("");
    return size < 0 ? SEALED_FILE_FAILED
                    : sealed_file_open_chunk(reader, at, bytes_at(reader->sealed, (size_t)size), piece_r);
}

void sealed_file_close(struct sealed_file_reader *reader)
{
    if (!reader)
        return;
    EVP_CIPHER_CTX_free(reader->context);
    OPENSSL_cleanse(reader, sizeof *reader);
    free(reader);
}
