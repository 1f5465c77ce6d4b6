/* passkey_challenge: see the header. */
#include "operation/passkeys/passkey_challenge.h"

#include "base/clock.h"
#include "model/account/passkey.h"
#include "operation/classes.h"
#include "operation/signed_text.h"

enum { MINUTES = 5, TEXT_MOST = 512 };

/* A challenge for registration is of no account: it holds the id of one. */
static struct bytes question_of(struct attempt *attempt, enum passkey_purpose purpose, struct bytes account)
{
    static const char *const words[] = {[PASSKEY_FOR_LOGIN] = "login",
                                        [PASSKEY_FOR_REGISTER] = "register",
                                        [PASSKEY_FOR_ADDING] = "add",
                                        [PASSKEY_FOR_PROOF] = "proof"};
    struct call *call = attempt->call;
    struct builder text = {0};
    signed_text_add_part(&text, BYTES("passkey"));
    signed_text_add_part(&text, call->ns);
    signed_text_add_part(&text, bytes_of(words[purpose]));
    signed_text_add_part(&text, purpose == PASSKEY_FOR_REGISTER ? BYTES("") : account);
    return builder_take(&text, call->arena);
}

enum fault passkey_challenge_make(struct attempt *attempt, enum passkey_purpose purpose, struct bytes account,
                                  struct bytes *text_r)
{
    struct arena *arena = attempt->call->arena;
    const struct schema *schema;
    struct bytes id = purpose == PASSKEY_FOR_REGISTER ? account : BYTES("");
    enum fault fault = classes_schema(attempt, &schema);
    if (fault)
        return fault;
    const char *payload = arena_printf(arena, "%lld %lld %.*s", (long long)clock_present_minute() + MINUTES,
                                       (long long)clock_wall_ms(), (int)id.size, id.data);
    *text_r =
        signed_text_make(arena, schema->secret, question_of(attempt, purpose, account), bytes_of(payload));
    return FAULT_NONE;
}

static bool read_payload(struct bytes payload, struct passkey_challenge *challenge)
{
    int64_t last_minute;
    bool is_one = bytes_to_i64(bytes_cut(&payload, ' '), &last_minute) &&
                  bytes_to_i64(bytes_cut(&payload, ' '), &challenge->issued);
    challenge->account = payload;
    return is_one && clock_present_minute() <= last_minute;
}

enum fault passkey_challenge_read(struct attempt *attempt, enum passkey_purpose purpose, struct bytes account,
                                  struct bytes text, struct passkey_challenge *challenge_r, bool *is_ours_r)
{
    const struct schema *schema;
    struct bytes payload;
    enum fault fault = classes_schema(attempt, &schema);
    *challenge_r = (struct passkey_challenge){.text = text};
    *is_ours_r = !fault && text.size <= TEXT_MOST &&
                 signed_text_read(attempt->call->arena, schema->secret,
                                  question_of(attempt, purpose, account), text, &payload) &&
                 read_payload(payload, challenge_r);
    return fault;
}

bool passkey_challenge_use(struct attempt *attempt, struct draft *account,
                           const struct passkey_challenge *challenge)
{
    struct bytes content;
    const struct item *item = draft_find_item(account, BYTES("Once"), BYTES(""));
    if (!passkey_use_challenge(attempt->call->arena, item ? item->content : NO_BYTES, challenge->issued,
                               challenge->text, &content))
        return false;
    draft_set_item(account, BYTES("Once"), BYTES(""), false, content);
    return true;
}
