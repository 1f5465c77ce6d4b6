/* account_proof: see the header. */
#include "operation/accounts/account_proof.h"

#include "edge/crypto/webauthn.h"
#include "operation/accounts/account_password.h"
#include "operation/passkeys/passkey_credential.h"

bool account_proof_has_password(const struct draft *draft)
{
    return draft_exists(draft) && draft_find_item(draft, BYTES("Secret"), BYTES("")) != NULL;
}

enum fault account_proof_check_passkeys(struct attempt *attempt)
{
    if (attempt->call->accounts.passkeys)
        return FAULT_NONE;
    const char *detail = webauthn_is_there() ? "The namespace has no passkeys." : WEBAUTHN_MISSING;
    return reply_fault(attempt->call, attempt->reply, FAULT_SCLOSED, detail, attempt->operation->name, NULL);
}

static enum fault check_passkey(struct attempt *attempt, struct draft *draft,
                                const struct passkey_credential *credential)
{
    enum fault fault =
        FAULT_FIRST(account_proof_check_passkeys(attempt), account_gate_count(attempt, NO_BYTES));
    return fault ? fault
                 : passkey_credential_use(attempt, PASSKEY_FOR_PROOF, attempt->call->caller.account, draft,
                                          credential);
}

static enum fault check_password(struct attempt *attempt, struct draft *draft, const struct account *account,
                                 struct bytes password)
{
    bool is_right;
    enum fault fault = FAULT_FIRST(account_gate_count(attempt, account->name),
                                   account_password_compare(attempt, draft, password, &is_right));
    if (fault || is_right)
        return fault;
    return account_password_refuse(attempt, "The password is wrong.");
}

enum fault account_proof_check(struct attempt *attempt, const struct reader *reader,
                               const struct json *object, struct draft *draft, const struct account *account)
{
    struct passkey_credential credential;
    struct bytes password;
    bool is_by_passkey, has_password = account_proof_has_password(draft);
    bool has_passkey = passkey_credential_count(draft) > 0;
    enum fault fault =
        passkey_credential_read(reader, object, "passkey", PASSKEY_GET, &credential, &is_by_passkey);
    if (!fault)
        fault = account_password_read(reader, object, "password", has_password && !is_by_passkey, &password);
    if (fault || (!has_password && !has_passkey))
        return fault;
    if (is_by_passkey)
        return check_passkey(attempt, draft, &credential);
    if (has_password)
        return check_password(attempt, draft, account, password);
    return reader_wrong(reader, object, "passkey", "A passkey of the account is expected.");
}
