/* push_send: one client for the lifetime of the process, so that connections to the services stay open. */
#include "operation/push/push_send.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/coding/base64.h"
#include "base/coding/siphash.h"
#include "base/log.h"
#include "base/secret.h"
#include "edge/crypto/crypto.h"
#include "edge/http.h"

enum {
    TIMEOUT_MS = 3000,
    CONNECT_TIMEOUT_MS = 2000,
    ANSWER_MOST = 64 << 10,
    WORDS_MOST = 300,
    PADDED = 512, /* texts are padded to a multiple of this: their size reveals little */
    RETRY_AFTER_MOST_S = 86400,
};

bool push_send_may_be_local(const struct settings *settings)
{
    return settings->debug_push_local == SETTING_ON;
}

/* --- which services ------------------------------------------------------------------------------ */

static bool ends_with(struct bytes text, struct bytes end)
{
    return text.size > end.size && memcmp(text.data + text.size - end.size, end.data, end.size) == 0;
}

/* `word` is a host, "*." and a suffix of hosts, or "*". */
static bool matches(struct bytes host, struct bytes word)
{
    if (bytes_equal(word, BYTES("*")) || bytes_equal(word, host))
        return true;
    return word.size > 2 && memcmp(word.data, "*.", 2) == 0 &&
           ends_with(host, (struct bytes){word.data + 1, word.size - 1});
}

static bool push_send_is_loopback(struct bytes host)
{
    return bytes_equal(host, BYTES("localhost")) || (host.size > 4 && memcmp(host.data, "127.", 4) == 0) ||
           (host.size >= 5 && memcmp(host.data, "[::1]", 5) == 0);
}

const char *push_send_refuse_service(const struct settings *settings, struct bytes origin)
{
    const char *slashes = memmem(origin.data, origin.size, "//", 2);
    assert(slashes);
    struct bytes host = {slashes + 2, (size_t)(origin.data + origin.size - slashes - 2)};
    if (push_send_may_be_local(settings) && push_send_is_loopback(host))
        return NULL;
    const char *word = settings->push_services;
    for (word += strspn(word, " "); *word; word += strspn(word, " ")) {
        size_t size = strcspn(word, " ");
        if (matches(host, (struct bytes){word, size}))
            return NULL;
        word += size;
    }
    return "The address is of no push service that this server sends to (push_services).";
}

/* --- services that do not answer ----------------------------------------------------------------- */

enum { RESTS = 64, FAILURES_LEAST = 2, REST_LEAST_MS = 5000, REST_DOUBLINGS = 7 };

/* A table with one service per slot; the last service of a slot that failed occupies it.  The key of the hash
 * is random, so that an address cannot be chosen to displace a certain service. */
struct service_name {
    uint64_t digest[2];
};

static struct rest {
    struct service_name whose;
    int failures; /* in a row; 0: unused */
    int64_t until_ms;
} rests[RESTS];

static struct service_name push_send_name_of(struct bytes origin)
{
    static struct siphash_key key;
    static bool is_drawn;
    struct service_name name;
    if (!is_drawn)
        crypto_random((unsigned char *)&key, sizeof key);
    is_drawn = true;
    siphash(&key, origin, name.digest);
    return name;
}

static struct rest *push_send_place_of(const struct service_name *name)
{
    return &rests[name->digest[0] % RESTS];
}

/* NULL: no recent failure is recorded. */
static struct rest *rest_of(const struct service_name *name)
{
    struct rest *rest = push_send_place_of(name);
    return rest->failures && memcmp(&rest->whose, name, sizeof *name) == 0 ? rest : NULL;
}

static int64_t rest_left(const struct service_name *name)
{
    const struct rest *rest = rest_of(name);
    return rest ? rest->until_ms - clock_monotonic_ms() : 0;
}

static void push_send_note(const struct service_name *name, bool has_answered)
{
    struct rest *rest = rest_of(name);
    if (has_answered) {
        if (rest)
            *rest = (struct rest){0};
        return;
    }
    if (!rest) {
        rest = push_send_place_of(name);
        *rest = (struct rest){.whose = *name};
    }
    int more = ++rest->failures - FAILURES_LEAST;
    if (more >= 0)
        rest->until_ms = clock_monotonic_ms() +
                         ((int64_t)REST_LEAST_MS << (more < REST_DOUBLINGS ? more : REST_DOUBLINGS));
}

/* --- a message ----------------------------------------------------------------------------------- */

static struct http *get_client(const struct settings *settings)
{
    static struct http *client;
    if (!client)
        client = http_open(&(struct http_options){
            .parallel = 1,
            .connect_timeout_ms = CONNECT_TIMEOUT_MS,
            .reach = push_send_may_be_local(settings) ? HTTP_PUBLIC_OR_LOOPBACK : HTTP_PUBLIC,
            .answer_most = ANSWER_MOST,
        });
    return client;
}

static struct bytes encrypt(struct arena *arena, const struct webpush_target *target, struct bytes text)
{
    struct curve_key idempotency;
    unsigned char salt[WEBPUSH_SALT];
    assert(text.size <= WEBPUSH_TEXT_MOST);
    size_t padded = (text.size + PADDED) / PADDED * PADDED;
    if (padded > WEBPUSH_TEXT_MOST)
        padded = WEBPUSH_TEXT_MOST;
    curve_make_key(&idempotency);
    crypto_random(salt, sizeof salt);
    struct bytes body = webpush_encrypt(arena, target, &idempotency, salt, text, padded - text.size);
    explicit_bzero(&idempotency, sizeof idempotency);
    return body;
}

/* The service's own text, made fit for a line. */
static const char *words_of(struct arena *arena, const struct http_result *result)
{
    if (result->is_out_of_reach)
        return "The address of the push service is not a public one.";
    if (!result->status)
        return arena_printf(arena, "No answer of the push service: %s.", result->reason);
    size_t size = result->body.size < WORDS_MOST ? result->body.size : WORDS_MOST;
    while (size && !bytes_is_utf8((struct bytes){result->body.data, size}))
        size--;
    char *words = arena_printf(arena, "The push service answers %d%s%.*s", result->status, size ? ": " : ".",
                               (int)size, result->body.data);
    for (char *at = words; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = ' ';
    return words;
}

static enum push_verdict verdict_of(const struct http_result *result)
{
    if (result->is_out_of_reach)
        return PUSH_REFUSED;
    switch (result->status) {
    case 404:
    case 410:
        return PUSH_GONE;
    case 413:
        return PUSH_TOO_LARGE;
    case 0:
    case 408:
    case 425:
    case 429:
        return PUSH_LATER;
    default:
        return result->status >= 500 ? PUSH_LATER : result->status / 100 == 2 ? PUSH_TAKEN : PUSH_REFUSED;
    }
}

void push_send(const struct settings *settings, struct arena *arena, const struct webpush_target *target,
               const struct curve_key *key, struct bytes text, const char *topic,
               struct push_outcome *outcome_r)
{
    struct service_name service = push_send_name_of(target->origin);
    int64_t rest_ms = rest_left(&service);
    if (rest_ms > 0) {
        *outcome_r = (struct push_outcome){.verdict = PUSH_LATER,
                                           .retry_after_s = rest_ms / 1000 + 1,
                                           .words = "The push service has not answered lately."};
        return;
    }
    struct bytes proof =
        webpush_authorization(arena, key, target->origin, settings->push_contact, clock_wall_ms());
    const char *const headers[] = {
        arena_printf(arena, "Authorization: %.*s", (int)proof.size, proof.data),
        "Content-Encoding: aes128gcm",
        "Urgency: normal",
        arena_printf(arena, "TTL: %lld", (long long)settings->push_ttl_s),
        topic ? arena_printf(arena, "Topic: %s", topic) : NULL,
        NULL,
    };
    const struct http_request request = {
        .method = "POST",
        .url = arena_copy(arena, target->endpoint.data, target->endpoint.size),
        .content_type = "application/octet-stream",
        .body = encrypt(arena, target, text),
        .headers = headers,
        .timeout_ms = TIMEOUT_MS,
    };
    struct http_result result;
    http_run(get_client(settings), &request, &result);
    push_send_note(&service, result.status || result.is_out_of_reach);
    *outcome_r = (struct push_outcome){
        .verdict = verdict_of(&result),
        .retry_after_s =
            result.retry_after_s < RETRY_AFTER_MOST_S ? result.retry_after_s : RETRY_AFTER_MOST_S,
        .words = words_of(arena, &result),
    };
}

/* --- push key --- */

enum { PROBLEM_BYTES = 600 };

bool push_key_read(const char *path, struct curve_key *key_r, char *problem, size_t problem_size)
{
    struct secret line;
    unsigned char secret[CURVE_SECRET];
    if (!secret_read(&line, "push_key_file", path, problem, problem_size))
        return false;
    bool is_key = base64_read(bytes_of(line.text), secret, sizeof secret) && curve_take_key(secret, key_r);
    if (!is_key)
        snprintf(problem, problem_size, "push_key_file = %s: its first line is no key of P-256 in base64",
                 path);
    explicit_bzero(secret, sizeof secret);
    secret_erase(&line);
    return is_key;
}

enum fault push_key_fetch(const struct settings *settings, struct curve_key *key_r)
{
    char problem[PROBLEM_BYTES];
    if (!*settings->push_key_file)
        return FAULT_OPUSH;
    if (push_key_read(settings->push_key_file, key_r, problem, sizeof problem))
        return FAULT_NONE;
    log_error("%s", problem);
    return FAULT_OPUSH;
}

void push_key_add_secret(struct builder *builder, const struct curve_key *key)
{
    base64_add(builder, (struct bytes){(const char *)key->secret, CURVE_SECRET});
    builder_add_text(builder, "\n");
}

void push_key_add_public(struct builder *builder, const struct curve_key *key)
{
    base64_add(builder, (struct bytes){(const char *)key->point, CURVE_POINT});
}
