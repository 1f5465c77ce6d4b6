/* sealed_stream: one cipher context, chunk by chunk. */
#include "seal/sealed_stream.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#include "edge/crypto/crypto.h"
#include "edge/crypto/crypto_private.h"
#include "edge/crypto/gcm_private.h"

enum { KEY = 32, SALT = 32, CHECK = 32, VERSION_AT = SEALED_STREAM_MARK - 1 };
enum { SEALED_CHUNK = SEALED_STREAM_CHUNK + CRYPTO_TAG };

/* The last byte is the version. */
static const char mark[SEALED_STREAM_MARK] = "stampd sealed \n\001";

/* A key, and the number of the next chunk. */
struct sealing {
    EVP_CIPHER_CTX *context;
    unsigned char key[KEY];
    uint32_t number;
};

struct sealed_stream_writer {
    bool (*write)(void *context, struct bytes bytes);
    void *context;
    struct sealing sealing;
    bool has_header;
    unsigned char header[SEALED_STREAM_HEADER];
    size_t size; /* of the clear chunk */
    unsigned char clear[SEALED_STREAM_CHUNK], sealed[SEALED_CHUNK];
};

struct sealed_stream_reader {
    bool (*read)(void *context, struct bytes *bytes_r);
    void *context;
    char secret[1024]; /* until the header is read */
    size_t secret_size;
    struct sealing sealing;
    bool has_header, is_ended;
    const char *problem;
    struct bytes arrived; /* not yet taken */
    size_t size;          /* of the sealed chunk, and one byte of the next */
    unsigned char clear[SEALED_STREAM_CHUNK], sealed[SEALED_CHUNK + 1];
};

static void *sealed_stream_allocate(size_t size)
{
    void *memory = memory_zeroed(1, size, "sealed stream");
    return memory;
}

/* --- keys and nonces --- */

/* `check_r` proves that a secret is the right one, and discloses nothing about the key. */
static void sealed_stream_derive(struct sealing *sealing, struct bytes secret, const unsigned char salt[SALT],
                                 unsigned char check_r[CHECK])
{
    const struct bytes salt_bytes = {(const char *)salt, SALT};
    crypto_derive(salt_bytes, secret, BYTES("stampd archive key"), sealing->key, KEY);
    crypto_derive(salt_bytes, secret, BYTES("stampd archive check"), check_r, CHECK);
    sealing->context = EVP_CIPHER_CTX_new();
    crypto_must(sealing->context != NULL);
}

static void sealed_stream_forget(struct sealing *sealing)
{
    EVP_CIPHER_CTX_free(sealing->context);
    OPENSSL_cleanse(sealing->key, KEY);
}

/* False: there are no more numbers, after 256 TiB. */
static bool next_nonce(struct sealing *sealing, bool is_last, unsigned char nonce_r[CRYPTO_NONCE])
{
    uint32_t number = sealing->number;
    memset(nonce_r, 0, CRYPTO_NONCE);
    for (int i = CRYPTO_NONCE - 2; i >= CRYPTO_NONCE - 5; i--, number >>= 8)
        nonce_r[i] = (unsigned char)number;
    nonce_r[CRYPTO_NONCE - 1] = is_last;
    return ++sealing->number != 0;
}

/* --- writing --- */

struct sealed_stream_writer *
sealed_stream_create(struct bytes secret, bool (*write)(void *context, struct bytes bytes), void *context)
{
    struct sealed_stream_writer *writer = sealed_stream_allocate(sizeof *writer);
    unsigned char *salt = writer->header + SEALED_STREAM_MARK;
    writer->write = write;
    writer->context = context;
    memcpy(writer->header, mark, SEALED_STREAM_MARK);
    crypto_random(salt, SALT);
    sealed_stream_derive(&writer->sealing, secret, salt, salt + SALT);
    return writer;
}

static bool write_chunk(struct sealed_stream_writer *writer, bool is_last)
{
    unsigned char nonce[CRYPTO_NONCE];
    if (!next_nonce(&writer->sealing, is_last, nonce))
        return false;
    if (!writer->has_header &&
        !writer->write(writer->context, (struct bytes){(const char *)writer->header, SEALED_STREAM_HEADER}))
        return false;
    writer->has_header = true;
    gcm_encrypt(writer->sealing.context, EVP_aes_256_gcm(), writer->sealing.key, nonce, BYTES(""),
                (struct bytes){(const char *)writer->clear, writer->size}, writer->sealed);
    struct bytes bytes = {(const char *)writer->sealed, writer->size + CRYPTO_TAG};
    writer->size = 0;
    return writer->write(writer->context, bytes);
}

bool sealed_stream_write(struct sealed_stream_writer *writer, struct bytes bytes)
{
    while (bytes.size) {
        if (writer->size == SEALED_STREAM_CHUNK && !write_chunk(writer, false))
            return false;
        size_t room = SEALED_STREAM_CHUNK - writer->size, part = bytes.size < room ? bytes.size : room;
        memcpy(writer->clear + writer->size, bytes.data, part);
        writer->size += part;
        bytes = (struct bytes){bytes.data + part, bytes.size - part};
    }
    return true;
}

bool sealed_stream_finish(struct sealed_stream_writer *writer)
{
    return write_chunk(writer, true);
}

void sealed_stream_destroy(struct sealed_stream_writer *writer)
{
    if (!writer)
        return;
    sealed_stream_forget(&writer->sealing);
    OPENSSL_cleanse(writer->clear, sizeof writer->clear);
    free(writer);
}

/* --- reading --- */

bool sealed_stream_is(struct bytes beginning)
{
    return beginning.size >= SEALED_STREAM_MARK && memcmp(beginning.data, mark, VERSION_AT) == 0;
}

struct sealed_stream_reader *
sealed_stream_open(struct bytes secret, bool (*read)(void *context, struct bytes *bytes_r), void *context)
{
    struct sealed_stream_reader *reader = sealed_stream_allocate(sizeof *reader);
    assert(secret.size <= sizeof reader->secret);
    memcpy(reader->secret, secret.data, secret.size);
    reader->secret_size = secret.size;
    reader->read = read;
    reader->context = context;
    return reader;
}

static bool sealed_stream_refuse(struct sealed_stream_reader *reader, const char *problem)
{
    reader->problem = problem;
    return false;
}

/* Collects bytes up to `wanted`; fewer: the end.  False: `read` has failed. */
static bool sealed_stream_collect(struct sealed_stream_reader *reader, unsigned char *buffer, size_t *size,
                                  size_t wanted)
{
    while (*size < wanted) {
        if (!reader->arrived.size) {
            if (!reader->read(reader->context, &reader->arrived))
                return false;
            if (!reader->arrived.size)
                return true;
        }
        size_t left = wanted - *size, part = reader->arrived.size < left ? reader->arrived.size : left;
        memcpy(buffer + *size, reader->arrived.data, part);
        *size += part;
        reader->arrived = (struct bytes){reader->arrived.data + part, reader->arrived.size - part};
    }
    return true;
}

static bool sealed_stream_read_header(struct sealed_stream_reader *reader)
{
    unsigned char header[SEALED_STREAM_HEADER], check[CHECK];
    const unsigned char *salt = header + SEALED_STREAM_MARK;
    size_t size = 0;
    if (!sealed_stream_collect(reader, header, &size, sizeof header))
        return false;
    if (!sealed_stream_is((struct bytes){(const char *)header, size}))
        return sealed_stream_refuse(reader, "not encrypted, but a key is named");
    if (header[VERSION_AT] != (unsigned char)mark[VERSION_AT])
        return sealed_stream_refuse(reader, "encrypted by another version of the format");
    if (size < sizeof header)
        return sealed_stream_refuse(reader, "truncated: its end is missing");
    sealed_stream_derive(&reader->sealing, (struct bytes){reader->secret, reader->secret_size}, salt, check);
    OPENSSL_cleanse(reader->secret, sizeof reader->secret);
    reader->has_header = true;
    return CRYPTO_memcmp(check, salt + SALT, CHECK) == 0 ||
           sealed_stream_refuse(reader, "this key is not the right one");
}

static bool open_chunk(struct sealed_stream_reader *reader, size_t sealed_size, bool is_last)
{
    unsigned char nonce[CRYPTO_NONCE];
    if (sealed_size < CRYPTO_TAG || !next_nonce(&reader->sealing, is_last, nonce))
        return sealed_stream_refuse(reader, "truncated: its end is missing");
    if (!gcm_decrypt(reader->sealing.context, EVP_aes_256_gcm(), reader->sealing.key, nonce, BYTES(""),
                     (struct bytes){(const char *)reader->sealed, sealed_size}, reader->clear))
        return sealed_stream_refuse(reader, "damaged: truncated, or not what was encrypted");
    return true;
}

bool sealed_stream_read(struct sealed_stream_reader *reader, struct bytes *bytes_r)
{
    *bytes_r = (struct bytes){"", 0};
    if (reader->problem || (!reader->has_header && !sealed_stream_read_header(reader)))
        return false;
    if (reader->is_ended)
        return true;
    if (!sealed_stream_collect(reader, reader->sealed, &reader->size, SEALED_CHUNK + 1))
        return false;
    bool is_last = reader->size <= SEALED_CHUNK;
    size_t size = is_last ? reader->size : SEALED_CHUNK;
    if (!open_chunk(reader, size, is_last))
        return false;
    *bytes_r = (struct bytes){(const char *)reader->clear, size - CRYPTO_TAG};
    reader->is_ended = is_last;
    reader->sealed[0] = reader->sealed[SEALED_CHUNK];
    reader->size = !is_last;
    return true;
}

const char *sealed_stream_problem(const struct sealed_stream_reader *reader)
{
    return reader->problem;
}

void sealed_stream_close(struct sealed_stream_reader *reader)
{
    if (!reader)
        return;
    sealed_stream_forget(&reader->sealing);
    OPENSSL_cleanse(reader, sizeof *reader);
    free(reader);
}
