/* webpush: accepts addresses of a grammar so narrow that every parser reads them alike. */
#include "operation/push/webpush.h"

#include <ctype.h>

#include "base/coding/base64.h"
#include "edge/crypto/crypto.h"
#include "edge/json/json.h"

enum {
    HEAD =
        WEBPUSH_SALT + 4 + 1 + CURVE_POINT, /* of a body: salt, size of records, size of the point, point */
    LAST_RECORD = 2,                        /* the byte after the text of the last record */
    LIFE_S = 12 * 3600,                     /* of a proof; services accept at most a day */
};

static_assert(HEAD + WEBPUSH_TEXT_MOST + 1 + CRYPTO_TAG == WEBPUSH_BODY_MOST, "the largest text fits");

/* --- the address --- */

static bool starts_with(struct bytes text, struct bytes prefix)
{
    return text.size >= prefix.size && memcmp(text.data, prefix.data, prefix.size) == 0;
}

/* The bytes from `from` on that are in `set` or, with `alnum`, letters and digits: where they end. */
static size_t webpush_skip(struct bytes text, size_t from, const char *set)
{
    while (from < text.size &&
           (isalnum((unsigned char)text.data[from]) || (text.data[from] && strchr(set, text.data[from]))))
        from++;
    return from;
}

/* Where the host that begins at `from` ends: a name, or an address, that of IPv6 in brackets. */
static size_t end_of_host(struct bytes endpoint, size_t from)
{
    if (from >= endpoint.size || endpoint.data[from] != '[')
        return webpush_skip(endpoint, from, ".-");
    size_t end = webpush_skip(endpoint, from + 1, ":.");
    return end < endpoint.size && endpoint.data[end] == ']' ? end + 1 : from;
}

/* Where the port ends, if there is one at `from`; 0: it is invalid. */
static size_t end_of_port(struct bytes endpoint, size_t from)
{
    int64_t port;
    if (from >= endpoint.size || endpoint.data[from] != ':')
        return from;
    size_t end = from + 1;
    while (end < endpoint.size && isdigit((unsigned char)endpoint.data[end]))
        end++;
    struct bytes digits = {endpoint.data + from + 1, end - from - 1};
    return digits.size <= 5 && bytes_to_i64(digits, &port) && port > 0 && port < 65536 ? end : 0;
}

static bool webpush_is_loopback(struct bytes host)
{
    return bytes_equal(host, BYTES("127.0.0.1")) || bytes_equal(host, BYTES("[::1]")) ||
           bytes_equal(host, BYTES("localhost"));
}

/* The origin as browsers write it: in lower case, without the default port. */
static struct bytes make_origin(struct arena *arena, struct bytes endpoint, size_t host_end, size_t end)
{
    struct bytes port = {endpoint.data + host_end, end - host_end};
    bool is_secure = starts_with(endpoint, BYTES("https:"));
    if (bytes_equal(port, is_secure ? BYTES(":443") : BYTES(":80")))
        end = host_end;
    char *origin = arena_copy(arena, endpoint.data, end);
    for (size_t i = 0; i < end; i++)
        origin[i] = (char)tolower((unsigned char)origin[i]);
    return (struct bytes){origin, end};
}

static const char *read_endpoint(struct arena *arena, struct bytes endpoint, bool may_be_local,
                                 struct webpush_target *target)
{
    bool is_secure = starts_with(endpoint, BYTES("https://"));
    if (!is_secure && !(may_be_local && starts_with(endpoint, BYTES("http://"))))
        return "The endpoint must begin with https://.";
    if (endpoint.size > WEBPUSH_ENDPOINT_MOST)
        return "The endpoint is too long.";
    size_t host = is_secure ? strlen("https://") : strlen("http://");
    size_t host_end = end_of_host(endpoint, host), end = end_of_port(endpoint, host_end);
    if (host_end == host || !end || (end < endpoint.size && !strchr("/?", endpoint.data[end])) ||
        webpush_skip(endpoint, end, "-._~:/?@!$&'()*+,;=%") != endpoint.size)
        return "The endpoint is no plain address: a host, a port perhaps, a path.";
    if (!is_secure && !webpush_is_loopback((struct bytes){endpoint.data + host, host_end - host}))
        return "The endpoint must begin with https://.";
    target->endpoint = endpoint;
    target->origin = make_origin(arena, endpoint, host_end, end);
    return NULL;
}

const char *webpush_read_target(struct arena *arena, struct bytes endpoint, struct bytes p256dh,
                                struct bytes auth, bool may_be_local, struct webpush_target *target_r)
{
    const char *refusal = read_endpoint(arena, endpoint, may_be_local, target_r);
    if (refusal)
        return refusal;
    if (!base64_read(p256dh, target_r->point, CURVE_POINT) || !curve_is_point(target_r->point))
        return "The key p256dh must be an uncompressed point of the curve P-256 in base64.";
    if (!base64_read(auth, target_r->auth, WEBPUSH_AUTH))
        return "The key auth must be 16 bytes in base64.";
    return NULL;
}

/* --- the body --- */

static struct bytes bytes_from(const unsigned char *data, size_t size)
{
    return (struct bytes){(const char *)data, size};
}

/* The secret of the message (RFC 8291, section 3.4). */
static void agree(const struct webpush_target *target, const struct curve_key *idempotency,
                  unsigned char secret_r[CURVE_SECRET])
{
    static const char label[] = "WebPush: info"; /* its NUL is part of it */
    unsigned char shared[CURVE_SECRET], info[sizeof label + 2 * CURVE_POINT];
    memcpy(info, label, sizeof label);
    memcpy(info + sizeof label, target->point, CURVE_POINT);
    memcpy(info + sizeof label + CURVE_POINT, idempotency->point, CURVE_POINT);
    bool is_agreed = curve_agree(idempotency, target->point, shared);
    assert(is_agreed); /* its parser has checked it */
    crypto_derive(bytes_from(target->auth, WEBPUSH_AUTH), bytes_from(shared, sizeof shared),
                  bytes_from(info, sizeof info), secret_r, CURVE_SECRET);
    explicit_bzero(shared, sizeof shared);
}

static unsigned char *write_head(unsigned char *body, const struct curve_key *idempotency,
                                 const unsigned char salt[WEBPUSH_SALT])
{
    static const unsigned char sizes[] = {0, 0, WEBPUSH_BODY_MOST >> 8, WEBPUSH_BODY_MOST & 255, CURVE_POINT};
    memcpy(body, salt, WEBPUSH_SALT);
    memcpy(body + WEBPUSH_SALT, sizes, sizeof sizes);
    memcpy(body + WEBPUSH_SALT + sizeof sizes, idempotency->point, CURVE_POINT);
    return body + HEAD;
}

struct bytes webpush_encrypt(struct arena *arena, const struct webpush_target *target,
                             const struct curve_key *idempotency, const unsigned char salt[WEBPUSH_SALT],
                             struct bytes text, size_t padding)
{
    /* Their NULs are part of them. */
    static const struct bytes for_key = {"Content-Encoding: aes128gcm", sizeof "Content-Encoding: aes128gcm"};
    static const struct bytes for_nonce = {"Content-Encoding: nonce", sizeof "Content-Encoding: nonce"};
    unsigned char secret[CURVE_SECRET], key[CRYPTO_KEY], nonce[CRYPTO_NONCE];
    assert(text.size + padding <= WEBPUSH_TEXT_MOST);
    size_t size = text.size + 1 + padding;
    char *record = arena_zalloc(arena, 1, size);
    unsigned char *body = arena_alloc(arena, HEAD + size + CRYPTO_TAG);
    if (text.size)
        memcpy(record, text.data, text.size);
    record[text.size] = LAST_RECORD;
    agree(target, idempotency, secret);
    crypto_derive(bytes_from(salt, WEBPUSH_SALT), bytes_from(secret, sizeof secret), for_key, key,
                  sizeof key);
    crypto_derive(bytes_from(salt, WEBPUSH_SALT), bytes_from(secret, sizeof secret), for_nonce, nonce,
                  sizeof nonce);
    crypto_seal(key, nonce, (struct bytes){record, size}, write_head(body, idempotency, salt));
    explicit_bzero(secret, sizeof secret);
    explicit_bzero(key, sizeof key);
    return bytes_from(body, HEAD + size + CRYPTO_TAG);
}

/* --- the proof --- */

struct bytes webpush_authorization(struct arena *arena, const struct curve_key *key, struct bytes origin,
                                   const char *contact, int64_t now_ms)
{
    struct builder claims = {0}, text = {0};
    unsigned char signature[CURVE_SIGNATURE];
    const size_t scheme = strlen("vapid t=");
    json_add_text(&claims, "{\"aud\":", origin);
    builder_printf(&claims, ",\"exp\":%lld,\"sub\":", (long long)(now_ms / 1000 + LIFE_S));
    json_add_string(&claims, bytes_of(contact));
    builder_add_text(&claims, "}");
    builder_add_text(&text, "vapid t=");
    base64_add(&text, BYTES("{\"typ\":\"JWT\",\"alg\":\"ES256\"}"));
    builder_add_text(&text, ".");
    base64_add(&text, builder_bytes(&claims));
    curve_sign(key, (struct bytes){text.data + scheme, text.size - scheme}, signature);
    builder_add_text(&text, ".");
    base64_add(&text, bytes_from(signature, sizeof signature));
    builder_add_text(&text, ", k=");
    base64_add(&text, bytes_from(key->point, CURVE_POINT));
    builder_free(&claims);
    return builder_take(&text, arena);
}
