/* passkey_credential: see the header. */
#include "operation/passkeys/passkey_credential.h"

#include "base/log.h"
#include "edge/crypto/crypto.h"
#include "model/document/stamp.h"
#include "operation/access/caller.h"

enum { ATTESTATION_MOST = 4096, DATA_MOST = 2048, SIGNATURE_MOST = 1024 }; /* bytes */

/* --- reading --- */

/* A member in base64url; `is_needed`: its absence is an error. */
static enum fault read_bytes(const struct reader *reader, const struct json *object, const char *member,
                             size_t most, bool is_needed, struct bytes *bytes_r)
{
    struct bytes text;
    enum fault fault = reader_text(reader, object, member, &text);
    *bytes_r = NO_BYTES;
    if (fault || (!text.data && !is_needed))
        return fault;
    if (text.size && passkey_read_base64(reader->call->arena, text, most, bytes_r))
        return FAULT_NONE;
    return reader_wrong(
        reader, object, member,
        arena_printf(reader->call->arena, "Base64url of 1 to %zu bytes without padding is expected.", most));
}

static enum fault read_response(const struct reader *reader, const struct json *response,
                                enum passkey_ceremony ceremony, struct passkey_credential *credential)
{
    struct bytes handle = NO_BYTES;
    enum fault fault = read_bytes(reader, response, "clientDataJSON", PASSKEY_CLIENT_DATA_MOST, true,
                                  &credential->client_data);
    if (fault)
        return fault;
    if (ceremony == PASSKEY_CREATE)
        return read_bytes(reader, response, "attestationObject", ATTESTATION_MOST, true,
                          &credential->attestation);
    fault =
        read_bytes(reader, response, "authenticatorData", DATA_MOST, true, &credential->authenticator_data);
    if (!fault)
        fault = FAULT_FIRST(
            read_bytes(reader, response, "signature", SIGNATURE_MOST, true, &credential->signature),
            read_bytes(reader, response, "userHandle", ACCOUNT_ID_BYTES, false, &handle));
    if (!fault && handle.size == ACCOUNT_ID_BYTES)
        credential->account = json_member(response, "userHandle")->value; /* an id is its base64url */
    return fault;
}

static enum fault passkey_credential_read_id(const struct reader *reader, const struct json *object,
                                             struct passkey_credential *credential)
{
    struct bytes raw, type;
    enum fault fault = FAULT_FIRST(read_bytes(reader, object, "id", WEBAUTHN_ID_MOST, true, &credential->id),
                                   read_bytes(reader, object, "rawId", WEBAUTHN_ID_MOST, true, &raw));
    if (!fault && !bytes_equal(raw, credential->id))
        fault = reader_wrong(reader, object, "rawId", "The same as id is expected.");
    if (!fault)
        fault = reader_text(reader, object, "type", &type);
    if (!fault && !bytes_equal(type, BYTES("public-key")))
        fault = reader_wrong(reader, object, "type", "public-key is expected.");
    return fault;
}

/* Other members are ignored: browsers add some with each version. */
enum fault passkey_credential_read(const struct reader *reader, const struct json *object, const char *member,
                                   enum passkey_ceremony ceremony, struct passkey_credential *credential_r,
                                   bool *is_given_r)
{
    const struct json *whole = json_member(object, member), *response = json_member(whole, "response");
    *credential_r = (struct passkey_credential){0};
    *is_given_r = whole != NULL && whole->kind != JSON_NULL;
    if (!*is_given_r)
        return FAULT_NONE;
    if (whole->kind != JSON_OBJECT || whole->is_shallow || !response || response->kind != JSON_OBJECT ||
        response->is_shallow)
        return reader_wrong(reader, object, member, "A PublicKeyCredential as JSON is expected.");
    return FAULT_FIRST(passkey_credential_read_id(reader, whole, credential_r),
                       read_response(reader, response, ceremony, credential_r));
}

enum fault passkey_credential_read_name(const struct reader *reader, const struct json *object,
                                        const char *member, struct bytes *name_r)
{
    enum fault fault = reader_text(reader, object, member, name_r);
    if (fault || account_is_device(*name_r))
        return fault;
    return reader_wrong(reader, object, member, "At most 200 bytes without control characters are expected.");
}

/* --- refusals --- */

static enum fault refuse_passkey_credential(struct attempt *attempt, const char *detail)
{
    return caller_refuse(attempt->worker_context, attempt->call, attempt->reply, "passkey", detail);
}

enum fault passkey_credential_refuse(struct attempt *attempt)
{
    return refuse_passkey_credential(attempt, "The passkey is not known here, or its signature is wrong.");
}

enum fault passkey_credential_refuse_challenge(struct attempt *attempt)
{
    return refuse_passkey_credential(attempt, "The challenge is wrong, used or expired.");
}

/* The page and the challenge, which concern no account. */
static enum fault check_client_data(struct attempt *attempt, enum passkey_purpose purpose,
                                    enum passkey_ceremony ceremony, struct bytes account,
                                    struct bytes client_data, struct passkey_challenge *challenge_r)
{
    struct bytes text;
    bool is_ours;
    const char *wrong = passkey_read_client_data(attempt->call->arena, attempt->call->accounts.passkeys,
                                                 ceremony, client_data, &text);
    if (wrong)
        return refuse_passkey_credential(attempt, wrong);
    enum fault fault = passkey_challenge_read(attempt, purpose, account, text, challenge_r, &is_ours);
    return fault || is_ours ? fault : passkey_credential_refuse_challenge(attempt);
}

/* --- passkeys of an account --- */

const struct item *passkey_credential_next(const struct draft *account, struct bytes after)
{
    const struct item *item = draft_next_item(account, BYTES("Key"), after);
    return item && bytes_equal(item->iclass, BYTES("Key")) ? item : NULL;
}

size_t passkey_credential_count(const struct draft *account)
{
    size_t count = 0;
    for (const struct item *item = passkey_credential_next(account, BYTES("")); item;
         item = passkey_credential_next(account, item->key))
        count++;
    return count;
}

struct bytes passkey_credential_key(struct attempt *attempt, struct bytes id)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    crypto_sha256_hex(id, digest);
    return bytes_of(arena_copy(attempt->call->arena, digest, CRYPTO_SHA256_HEX));
}

static void write_key(struct attempt *attempt, struct draft *account, struct bytes key,
                      const struct passkey *passkey)
{
    draft_set_item(account, BYTES("Key"), key, false, passkey_write(attempt->call->arena, passkey));
}

/* --- new ones --- */

enum fault passkey_credential_verify(struct attempt *attempt, enum passkey_purpose purpose,
                                     struct bytes account, const struct passkey_credential *credential,
                                     struct webauthn_credential *verified_r,
                                     struct passkey_challenge *challenge_r)
{
    struct call *call = attempt->call;
    enum fault fault =
        check_client_data(attempt, purpose, PASSKEY_CREATE, account, credential->client_data, challenge_r);
    if (fault)
        return fault;
    const char *wrong =
        webauthn_read_credential(call->arena, call->accounts.passkeys->id, credential->client_data,
                                 credential->attestation, verified_r);
    if (!wrong && !bytes_equal(verified_r->id, credential->id))
        wrong = "The id is not the one that the authenticator made.";
    return wrong ? refuse_passkey_credential(attempt, wrong) : FAULT_NONE;
}

enum fault passkey_credential_add(struct attempt *attempt, struct draft *account,
                                  const struct webauthn_credential *credential, struct bytes name,
                                  const struct passkey_challenge *challenge)
{
    struct bytes key = passkey_credential_key(attempt, credential->id);
    const struct passkey passkey = {.credential = *credential, .name = name, .created = stamp_now()};
    if (draft_find_item(account, BYTES("Key"), key))
        return reply_fault(attempt->call, attempt->reply, FAULT_AUNIQUE, "The account has this passkey.",
                           "passkey", "Account", NULL);
    if (passkey_credential_count(account) >= PASSKEY_KEYS_MOST)
        return reply_fault(attempt->call, attempt->reply, FAULT_SCLOSED,
                           "An account has at most 10 passkeys: drop one first.", attempt->operation->name,
                           NULL);
    if (!passkey_challenge_use(attempt, account, challenge))
        return passkey_credential_refuse_challenge(attempt);
    write_key(attempt, account, key, &passkey);
    return FAULT_NONE;
}

/* --- those that are used --- */

/* One of the account's; false: none, and the passkey is nobody's. */
static bool find_passkey(struct attempt *attempt, const struct draft *account, struct bytes key,
                         struct passkey *passkey_r)
{
    const struct item *item = draft_exists(account) ? draft_find_item(account, BYTES("Key"), key) : NULL;
    bool is_there = item && passkey_read(attempt->call->arena, item->content, passkey_r);
    if (!is_there)
        *passkey_r = (struct passkey){.credential.key = webauthn_key_of_nobody()};
    return is_there;
}

/* An authenticator that counts has counted on, else there are two that have its key. */
static bool has_counted(struct attempt *attempt, const struct passkey *passkey, struct bytes id,
                        int64_t count)
{
    int64_t before = passkey->credential.count;
    bool is_higher = (!count && !before) || count > before;
    if (!is_higher)
        log_warning("a passkey was refused: its counter went back, it may have been copied ns=%.*s "
                    "account=%.*s counter=%lld before=%lld",
                    (int)attempt->call->ns.size, attempt->call->ns.data, (int)id.size, id.data,
                    (long long)count, (long long)before);
    return is_higher;
}

/* WebAuthn lets a site compare the flag "backup eligible" with that of the passkey's creation.  Password
 * managers change it with an update, or between devices, and whoever has no other way to sign in would be
 * locked out: a right signature counts, unless the namespace is strict. */
static enum fault take_backup(struct attempt *attempt, struct passkey *passkey, struct bytes id,
                              bool may_backup)
{
    const struct bytes ns = attempt->call->ns;
    if (may_backup == passkey->credential.may_backup)
        return FAULT_NONE;
    if (attempt->call->accounts.passkeys->is_strict) {
        log_warning("a passkey was refused: its flag backup eligible has changed ns=%.*s account=%.*s",
                    (int)ns.size, ns.data, (int)id.size, id.data);
        return refuse_passkey_credential(
            attempt, "Whether the passkey may be backed up has changed; here that is refused.");
    }
    log_info("the flag backup eligible of a passkey has changed ns=%.*s account=%.*s now=%d", (int)ns.size,
             ns.data, (int)id.size, id.data, may_backup);
    passkey->credential.may_backup = may_backup;
    return FAULT_NONE;
}

enum fault passkey_credential_use(struct attempt *attempt, enum passkey_purpose purpose, struct bytes id,
                                  struct draft *account, const struct passkey_credential *credential)
{
    const struct webauthn_assertion assertion = {credential->client_data, credential->authenticator_data,
                                                 credential->signature};
    struct call *call = attempt->call;
    struct bytes key = passkey_credential_key(attempt, credential->id);
    struct passkey_challenge challenge;
    struct passkey passkey;
    int64_t count;
    bool may_backup;
    enum fault fault =
        check_client_data(attempt, purpose, PASSKEY_GET, id, credential->client_data, &challenge);
    if (fault)
        return fault;
    bool is_there = find_passkey(attempt, account, key, &passkey);
    bool is_signed = webauthn_verify(call->accounts.passkeys->id, &passkey.credential.key, &assertion, &count,
                                     &may_backup);
    if (!is_there || !is_signed)
        return passkey_credential_refuse(attempt);
    if (!passkey_challenge_use(attempt, account, &challenge))
        return passkey_credential_refuse_challenge(attempt);
    if (!has_counted(attempt, &passkey, draft_base(account)->header.id, count))
        return passkey_credential_refuse(attempt);
    fault = take_backup(attempt, &passkey, draft_base(account)->header.id, may_backup);
    if (fault)
        return fault;
    passkey.credential.count = count;
    passkey.used = stamp_now();
    write_key(attempt, account, key, &passkey);
    return FAULT_NONE;
}
