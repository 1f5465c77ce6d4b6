/* passkey_options: see the header. */
#include "operation/passkeys/passkey_options.h"

#include "base/coding/base64.h"
#include "operation/passkeys/passkey_credential.h"

#define TIMEOUT_MS "300000"

static void add_string(struct builder *body, const char *before, struct bytes text)
{
    builder_add_bytes(body, bytes_of(before));
    json_add_string(body, text);
}

/* The credentials of the account: [{"type","id"},…]. */
static void add_credentials(struct attempt *attempt, const char *before, const struct draft *draft)
{
    struct builder *body = attempt->reply->body;
    struct passkey passkey;
    const char *comma = "";
    builder_add_bytes(body, bytes_of(before));
    for (const struct item *item = draft ? passkey_credential_next(draft, BYTES("")) : NULL; item;
         item = passkey_credential_next(draft, item->key)) {
        if (!passkey_read(attempt->call->arena, item->content, &passkey))
            continue;
        builder_printf(body, "%s{\"type\":\"public-key\",\"id\":\"", comma);
        base64_add(body, passkey.credential.id);
        builder_add_text(body, "\"}");
        comma = ",";
    }
    builder_add_text(body, "]");
}

/* The user's handle is the account's id, whose text is base64url. */
enum fault passkey_options_write_new(struct attempt *attempt, enum passkey_purpose purpose, struct bytes id,
                                     struct bytes name, const struct draft *draft)
{
    const struct relying_party *party = attempt->call->accounts.passkeys;
    struct builder *body = attempt->reply->body;
    struct bytes challenge;
    enum fault fault = passkey_challenge_make(attempt, purpose, id, &challenge);
    if (fault)
        return fault;
    add_string(body, "{\"options\":{\"rp\":{\"id\":", bytes_of(party->id));
    add_string(body, ",\"name\":", party->name);
    add_string(body, "},\"user\":{\"id\":", id);
    add_string(body, ",\"name\":", name.size ? name : party->name);
    add_string(body, ",\"displayName\":", name.size ? name : party->name);
    add_string(body, "},\"challenge\":", challenge);
    builder_printf(body,
                   ",\"pubKeyCredParams\":[{\"type\":\"public-key\",\"alg\":%d},"
                   "{\"type\":\"public-key\",\"alg\":%d},{\"type\":\"public-key\",\"alg\":%d}]"
                   ",\"timeout\":" TIMEOUT_MS,
                   WEBAUTHN_ES256, WEBAUTHN_EDDSA, WEBAUTHN_RS256);
    add_credentials(attempt, ",\"excludeCredentials\":[", draft);
    builder_add_text(body,
                     ",\"authenticatorSelection\":{\"residentKey\":\"required\",\"requireResidentKey\":true,"
                     "\"userVerification\":\"required\"},\"attestation\":\"none\"}}");
    return FAULT_NONE;
}

enum fault passkey_options_write(struct attempt *attempt, enum passkey_purpose purpose, struct bytes id,
                                 const struct draft *draft)
{
    struct builder *body = attempt->reply->body;
    struct bytes challenge;
    enum fault fault = passkey_challenge_make(attempt, purpose, id, &challenge);
    if (fault)
        return fault;
    add_string(body, "{\"options\":{\"challenge\":", challenge);
    add_string(body, ",\"rpId\":", bytes_of(attempt->call->accounts.passkeys->id));
    add_credentials(attempt, ",\"timeout\":" TIMEOUT_MS ",\"allowCredentials\":[", draft);
    builder_add_text(body, ",\"userVerification\":\"required\"}}");
    return FAULT_NONE;
}
