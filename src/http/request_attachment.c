/* request_attachment: the path and the headers; digests as in RFC 9530. */
#include "http/request_attachment.h"

#include "base/coding/base64.h"
#include "base/coding/hex.h"
#include "model/document/attachment.h"

enum { DIGEST_BYTES = 32, DIGEST_TEXT = 44 };

bool request_attachment_find(const struct bytes *pieces, size_t count, struct call *call)
{
    bool is_by_key = count == 6, is_by_digest = count == 7 && bytes_equal(pieces[5], BYTES("sha"));
    if ((!is_by_key && !is_by_digest) || !bytes_equal(pieces[1], BYTES("doc")) ||
        !bytes_equal(pieces[4], BYTES("file")))
        return false;
    call->route = CALL_ATTACHMENT;
    call->path = pieces + 2;
    call->path_count = count - 2;
    return true;
}

/* :base64: of 32 bytes, with its padding, in the alphabet with + and /. */
static bool read_bytes(struct bytes value, unsigned char digest_r[DIGEST_BYTES])
{
    char text[DIGEST_TEXT];
    if (value.size != DIGEST_TEXT + 2 || value.data[0] != ':' || value.data[DIGEST_TEXT + 1] != ':')
        return false;
    for (size_t i = 0; i < DIGEST_TEXT; i++) {
        char letter = value.data[i + 1];
        if (letter == '-' || letter == '_')
            return false;
        text[i] = letter == '+' ? '-' : letter == '/' ? '_' : letter;
    }
    return base64_read((struct bytes){text, DIGEST_TEXT}, digest_r, DIGEST_BYTES);
}

/* A dictionary of algorithms; those that are not sha-256 are ignored, and so are parameters. */
static bool read_digest(struct arena *arena, struct bytes field, struct bytes *digest_r)
{
    *digest_r = NO_BYTES;
    while (field.size) {
        unsigned char digest[DIGEST_BYTES];
        struct bytes member = bytes_trim(bytes_cut(&field, ','));
        struct bytes value = bytes_trim(bytes_cut(&member, ';'));
        if (!bytes_equal(bytes_trim(bytes_cut(&value, '=')), BYTES("sha-256")))
            continue;
        if (!read_bytes(bytes_trim(value), digest))
            return false;
        char *text = arena_alloc(arena, 2 * DIGEST_BYTES);
        hex_write(digest, DIGEST_BYTES, text);
        *digest_r = (struct bytes){text, 2 * DIGEST_BYTES};
    }
    return true;
}

static enum fault request_attachment_refuse(struct call *call, struct reply *reply, const char *header,
                                            const char *expected)
{
    return reply_fault(call, reply, FAULT_AARG, expected, header, NULL);
}

enum fault request_attachment_read_promise(struct call *call, struct bytes content_digest,
                                           struct bytes repr_digest, struct attachment_request *attachment,
                                           struct reply *reply)
{
    static const char expected[] = "A digest sha-256=:BASE64: is expected.";
    struct bytes other;
    if (!read_digest(call->arena, content_digest, &attachment->promised))
        return request_attachment_refuse(call, reply, "Content-Digest", expected);
    if (!read_digest(call->arena, repr_digest, &other))
        return request_attachment_refuse(call, reply, "Repr-Digest", expected);
    if (!attachment->promised.data)
        attachment->promised = other;
    else if (other.data && !bytes_equal(other, attachment->promised))
        return request_attachment_refuse(call, reply, "Repr-Digest", "It differs from Content-Digest.");
    return FAULT_NONE;
}

enum fault request_attachment_read(struct call *call, const struct request_attachment_headers *headers,
                                   struct attachment_request *attachment_r, struct reply *reply)
{
    bool is_by_key = call->path_count == 4;
    struct bytes type = bytes_trim(headers->content_type);
    *attachment_r = (struct attachment_request){.key = is_by_key ? call->path[3] : NO_BYTES,
                                                .sha = is_by_key ? NO_BYTES : call->path[4],
                                                .mime = type,
                                                .is_asked = headers->is_asked};
    if (call->resource->act != RESOURCE_STORE_FILE)
        return FAULT_NONE;
    if (type.size && !attachment_is_mime(type))
        return reply_fault(call, reply, FAULT_ATYPE, "The Content-Type is malformed.", "body", NULL);
    if (headers->content_length.size &&
        (!bytes_to_i64(headers->content_length, &attachment_r->size) || attachment_r->size < 0))
        return reply_fault(call, reply, FAULT_ABODY, NULL, NULL);
    if (headers->is_asked)
        return FAULT_NONE;
    enum fault fault = request_attachment_read_promise(call, headers->content_digest, headers->repr_digest,
                                                       attachment_r, reply);
    if (!fault && call->idempotency_key.data && !attachment_r->promised.data)
        fault = request_attachment_refuse(call, reply, "Repr-Digest",
                                          "Under an Idempotency-Key the digest must be named.");
    return fault;
}
