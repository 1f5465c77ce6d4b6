/* fuzz_passkey: what browsers and authenticators send, and what is stored of it; the first byte chooses.
 *
 * An accepted attestation has an id and a key; nobody's key has signed nothing; accepted client data are of
 * an origin of the party; a stored key, written again, is read as the same; a challenge is used once. */
#include "fuzz.h"

#include "base/coding/cbor.h"
#include "model/account/passkey.h"

const char fuzz_target[] = "passkey";

#define RP "localhost"

static void try_item(struct bytes text)
{
    struct bytes rest = text, item, again;
    if (!cbor_take_item(&rest, &item))
        return;
    assert(item.data == text.data && item.size && item.size + rest.size == text.size);
    rest = item;
    bool is_same = cbor_take_item(&rest, &again);
    assert(is_same && !rest.size);
}

static void try_attestation(struct arena *arena, struct bytes text)
{
    struct webauthn_credential credential;
    if (webauthn_read_credential(arena, RP, BYTES("{}"), text, &credential))
        return;
    assert(credential.id.size >= WEBAUTHN_ID_LEAST && credential.id.size <= WEBAUTHN_ID_MOST);
    assert(webauthn_is_key(&credential.key) && credential.key.key.size <= WEBAUTHN_KEY_MOST);
}

static void try_assertion(struct bytes text)
{
    const struct webauthn_key nobody = webauthn_key_of_nobody();
    size_t size = text.size ? (unsigned char)*text.data : 0, half = size < text.size ? size : text.size;
    const struct webauthn_assertion assertion = {
        BYTES("{}"), {text.data, half}, {text.data + half, text.size - half}};
    int64_t count;
    bool may_backup;
    bool is_verified = webauthn_verify(RP, &nobody, &assertion, &count, &may_backup);
    assert(!is_verified);
}

static struct relying_party *read_party(struct arena *arena, struct bytes text)
{
    static const struct json_limits limits = {.depth = 8, .tree_depth = 1};
    struct json_problem problem;
    struct json *root;
    return json_read(arena, text, &limits, &root, &problem) ? NULL : relying_party_read(arena, root);
}

/* The text is a configuration, and on the next line client data. */
static void try_client_data(struct arena *arena, struct bytes text)
{
    struct bytes line = bytes_cut(&text, '\n'), challenge = NO_BYTES;
    struct relying_party *party = read_party(arena, line);
    if (!party || passkey_read_client_data(arena, party, PASSKEY_GET, text, &challenge))
        return;
    assert(challenge.data && passkey_read_client_data(arena, party, PASSKEY_CREATE, text, &challenge));
    for (const struct json *one = party->origins ? party->origins->first : NULL; one; one = one->next)
        assert(relying_party_admits(party, one->value));
}

static void try_key(struct arena *arena, struct bytes text)
{
    struct passkey one, other;
    if (!passkey_read(arena, text, &one))
        return;
    struct bytes written = passkey_write(arena, &one);
    bool is_read = passkey_read(arena, written, &other);
    assert(is_read && bytes_equal(passkey_write(arena, &other), written));
    assert(bytes_equal(one.credential.id, other.credential.id) && bytes_equal(one.name, other.name));
}

static void try_used(struct arena *arena, struct bytes text)
{
    struct bytes content, again;
    if (!passkey_use_challenge(arena, text, 1000, BYTES("a challenge"), &content))
        return;
    bool is_used = passkey_use_challenge(arena, content, 1000, BYTES("a challenge"), &again);
    assert(!is_used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct arena *arena = arena_create("fuzz");
    struct bytes text = {(const char *)data + 1, size - 1};
    switch (*data) {
    case 'c':
        try_item(text);
        break;
    case 'a':
        try_attestation(arena, text);
        break;
    case 's':
        try_assertion(text);
        break;
    case 'd':
        try_client_data(arena, text);
        break;
    case 'k':
        try_key(arena, text);
        break;
    case 'u':
        try_used(arena, text);
        break;
    }
    arena_destroy(arena);
    return 0;
}
