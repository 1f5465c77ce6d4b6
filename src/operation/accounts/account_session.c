/* account_session: see the header. */
#include "operation/accounts/account_session.h"

#include "base/coding/base64.h"
#include "base/clock.h"
#include "edge/crypto/crypto.h"
#include "model/document/stamp.h"
#include "operation/access/access.h"
#include "operation/access/caller.h"

enum { DAY_MINUTES = 1440, MINUTE_S = 60 };

enum fault account_session_read(const struct reader *reader, const struct json *object,
                                struct session_wish *wish_r)
{
    *wish_r = (struct session_wish){0};
    enum fault fault = reader_text(reader, object, "device", &wish_r->device);
    if (!fault && !account_is_device(wish_r->device))
        fault = reader_wrong(reader, object, "device",
                             "At most 200 bytes without control characters are expected.");
    if (!fault)
        fault = reader_boolean(reader, object, "cookie", &wish_r->is_cookie);
    if (!fault && wish_r->is_cookie && !reader->call->may_get_cookie)
        fault = access_refuse_origin(reader->call, reader->reply);
    return fault;
}

/* --- secrets --- */

static struct bytes random_text(struct arena *arena, size_t size)
{
    unsigned char random[ACCOUNT_SECRET_BYTES];
    struct builder text = {0};
    assert(size <= sizeof random);
    crypto_random(random, size);
    base64_add(&text, (struct bytes){(const char *)random, size});
    struct bytes result = arena_keep(arena, builder_bytes(&text));
    explicit_bzero(random, sizeof random);
    explicit_bzero(text.data, text.size);
    builder_free(&text);
    return result;
}

struct bytes account_session_new_id(struct attempt *attempt)
{
    return random_text(attempt->call->arena, ACCOUNT_ID_BYTES);
}

struct bytes account_session_new_secret(struct attempt *attempt, struct bytes *key_r)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    struct bytes secret = random_text(attempt->call->arena, ACCOUNT_SECRET_BYTES);
    crypto_sha256_hex(secret, digest);
    *key_r = bytes_of(arena_copy(attempt->call->arena, digest, CRYPTO_SHA256_HEX));
    return secret;
}

static const char *make_token(struct attempt *attempt, const char *prefix, struct bytes id,
                              struct bytes secret)
{
    return arena_printf(attempt->call->arena, "%s%.*s.%.*s", prefix, (int)id.size, id.data, (int)secret.size,
                        secret.data);
}

/* --- the list --- */

struct listed_session {
    struct bytes key;
    struct account_session session;
};

static const struct item *next_session(const struct draft *account, struct bytes after)
{
    const struct item *item = draft_next_item(account, BYTES("Sess"), after);
    return item && bytes_equal(item->iclass, BYTES("Sess")) ? item : NULL;
}

size_t account_session_count(const struct draft *account)
{
    size_t count = 0;
    for (const struct item *item = next_session(account, BYTES("")); item;
         item = next_session(account, item->key))
        count++;
    return count;
}

/* All of them, in the arena; what cannot be read is no session, and expired. */
static struct listed_session *account_session_list(struct attempt *attempt, const struct draft *account,
                                                   size_t *count_r)
{
    struct arena *arena = attempt->call->arena;
    struct listed_session *all =
        ARENA_ARRAY(arena, struct listed_session, account_session_count(account) + 1);
    *count_r = 0;
    for (const struct item *item = next_session(account, BYTES("")); item;
         item = next_session(account, item->key)) {
        struct listed_session *one = &all[(*count_r)++];
        one->key = arena_keep(arena, item->key);
        if (!account_read_session(arena, item->content, &one->session))
            one->session = (struct account_session){.expires = STAMP_MIN};
    }
    return all;
}

static struct listed_session *oldest_of(struct listed_session *all, size_t count)
{
    struct listed_session *oldest = NULL;
    for (size_t i = 0; i < count; i++)
        if (!all[i].session.is_service && all[i].key.data &&
            (!oldest || all[i].session.created < oldest->session.created))
            oldest = &all[i];
    return oldest;
}

/* Removes what has expired, and the oldest, until there is room for one more. */
static void account_session_make_room(struct attempt *attempt, struct draft *account)
{
    int64_t minute = clock_present_minute();
    size_t count, sessions = 0;
    struct listed_session *all = account_session_list(attempt, account, &count);
    for (size_t i = 0; i < count; i++) {
        if (all[i].session.is_service)
            continue;
        sessions++;
        if (!account_is_over(all[i].session.expires, minute))
            continue;
        draft_remove_item(account, BYTES("Sess"), all[i].key);
        all[i].key = NO_BYTES;
        sessions--;
    }
    while (sessions && (int64_t)sessions >= attempt->call->accounts.sessions_most) {
        struct listed_session *oldest = oldest_of(all, count);
        draft_remove_item(account, BYTES("Sess"), oldest->key);
        oldest->key = NO_BYTES;
        sessions--;
    }
}

/* --- beginning, ending --- */

static void write_begun(struct attempt *attempt, struct bytes id, const char *token, int64_t expires)
{
    struct builder *body = attempt->reply->body;
    json_add_text(body, "{\"account\":", id);
    if (token)
        json_add_text(body, ",\"token\":", bytes_of(token));
    builder_printf(body, ",\"expires\":%lld}", (long long)expires);
}

void account_session_begin(struct attempt *attempt, struct draft *account, struct bytes id,
                           const struct session_wish *wish)
{
    struct call *call = attempt->call;
    struct bytes key, secret = account_session_new_secret(attempt, &key);
    int64_t minutes = call->accounts.session_days * DAY_MINUTES;
    const struct account_session session = {.created = stamp_now(),
                                            .expires = account_stamp_of(clock_present_minute() + minutes),
                                            .device = wish->device};
    account_session_make_room(attempt, account);
    draft_set_item(account, BYTES("Sess"), key, false, account_write_session(call->arena, &session));
    const char *token = make_token(attempt, "st_", id, secret);
    if (wish->is_cookie)
        attempt->reply->cookie = caller_cookie(call, bytes_of(token), minutes * MINUTE_S);
    write_begun(attempt, id, wish->is_cookie ? NULL : token, session.expires);
}

const char *account_session_add_key(struct attempt *attempt, struct draft *account, struct bytes id,
                                    struct bytes label)
{
    struct bytes key, secret = account_session_new_secret(attempt, &key);
    const struct account_session session = {.created = stamp_now(), .is_service = true, .device = label};
    draft_set_item(account, BYTES("Sess"), key, false, account_write_session(attempt->call->arena, &session));
    return make_token(attempt, "sk_", id, secret);
}

size_t account_session_end(struct attempt *attempt, struct draft *account, struct bytes prefix,
                           struct bytes kept)
{
    size_t count, ended = 0;
    const struct listed_session *all = account_session_list(attempt, account, &count);
    for (size_t i = 0; i < count; i++) {
        struct bytes key = all[i].key;
        if (key.size < prefix.size || !bytes_equal((struct bytes){key.data, prefix.size}, prefix) ||
            bytes_equal(key, kept))
            continue;
        draft_remove_item(account, BYTES("Sess"), key);
        ended++;
    }
    return ended;
}

bool account_session_has_key(struct attempt *attempt, const struct draft *account)
{
    size_t count;
    const struct listed_session *all = account_session_list(attempt, account, &count);
    for (size_t i = 0; i < count; i++)
        if (all[i].session.is_service)
            return true;
    return false;
}

int64_t account_session_last(struct attempt *attempt, const struct draft *account)
{
    int64_t last = STAMP_MIN;
    size_t count;
    const struct listed_session *all = account_session_list(attempt, account, &count);
    for (size_t i = 0; i < count; i++)
        if (!all[i].session.is_service && all[i].session.expires > last)
            last = all[i].session.expires;
    return last;
}

/* --- the answer --- */

static void account_session_write_one(const struct call *call, const struct listed_session *one,
                                      struct builder *body)
{
    size_t size = one->key.size < ACCOUNT_SESSION_NAME ? one->key.size : ACCOUNT_SESSION_NAME;
    json_add_text(body, "{\"session\":", (struct bytes){one->key.data, size});
    builder_printf(body, ",\"created\":%lld", (long long)one->session.created);
    if (one->session.is_service)
        builder_add_text(body, ",\"service\":true");
    else
        builder_printf(body, ",\"expires\":%lld", (long long)one->session.expires);
    if (one->session.device.size)
        json_add_text(body, ",\"device\":", one->session.device);
    if (bytes_equal(one->key, call->caller_session))
        builder_add_text(body, ",\"current\":true");
    builder_add_text(body, "}");
}

void account_session_write(struct attempt *attempt, const struct draft *account)
{
    struct builder *body = attempt->reply->body;
    int64_t minute = clock_present_minute();
    const char *comma = "";
    size_t count;
    const struct listed_session *all = account_session_list(attempt, account, &count);
    builder_add_text(body, "[");
    for (size_t i = 0; i < count; i++) {
        if (account_is_over(all[i].session.expires, minute))
            continue;
        builder_printf(body, "%s", comma);
        account_session_write_one(attempt->call, &all[i], body);
        comma = ",";
    }
    builder_add_text(body, "]");
}
