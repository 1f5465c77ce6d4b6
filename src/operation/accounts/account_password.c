/* account_password: see the header. */
#include "operation/accounts/account_password.h"

#include "edge/password.h"
#include "operation/caller.h"
#include "segment/hashers.h"

enum fault account_password_read(const struct reader *reader, const struct json *object, const char *member,
                                 bool is_needed, struct bytes *password_r)
{
    enum fault fault = reader_text(reader, object, member, password_r);
    bool is_long = password_r->size >= ACCOUNT_PASSWORD_LEAST && password_r->size <= ACCOUNT_PASSWORD_MOST;
    if (fault || is_long || (!password_r->data && !is_needed))
        return fault;
    return reader_wrong(reader, object, member, "A password of 8 to 1024 bytes is expected.");
}

static enum fault enter(struct attempt *attempt)
{
    const struct settings *settings = attempt->worker_context->settings;
    const struct reader reader = account_gate_reader(attempt);
    int64_t most = settings->workers * settings->argon2_share / 100;
    if (hashers_enter(attempt->worker_context->segment, most > 0 ? most : 1))
        return FAULT_NONE;
    return reader_busy(&reader, "argon2_share", settings->argon2_share);
}

enum fault account_password_set(struct attempt *attempt, struct draft *account, struct bytes password)
{
    struct account_kept *kept = account_gate_kept(attempt);
    if (!kept->made) {
        char digest[PASSWORD_DIGEST_MOST];
        enum fault fault = enter(attempt);
        if (fault)
            return fault;
        password_digest(password, digest);
        hashers_leave(attempt->worker_context->segment);
        kept->made = arena_copy(attempt->call->arena, digest, strlen(digest));
    }
    draft_set_item(account, BYTES("Secret"), BYTES(""), true, bytes_of(kept->made));
    return FAULT_NONE;
}

enum fault account_password_compare(struct attempt *attempt, const struct draft *account,
                                    struct bytes password, bool *is_right_r)
{
    struct account_kept *kept = account_gate_kept(attempt);
    const struct item *item =
        draft_exists(account) ? draft_find_item(account, BYTES("Secret"), BYTES("")) : NULL;
    const char *digest = item ? arena_copy(attempt->call->arena, item->content.data, item->content.size)
                              : password_of_nobody();
    if (!kept->compared || strcmp(kept->compared, digest) != 0) {
        enum fault fault = enter(attempt);
        if (fault)
            return fault;
        kept->is_right = password_is(password, digest);
        kept->compared = digest;
        hashers_leave(attempt->worker_context->segment);
    }
    *is_right_r = item && kept->is_right;
    return FAULT_NONE;
}

enum fault account_password_refuse(struct attempt *attempt, const char *detail)
{
    return caller_refuse(attempt->worker_context, attempt->call, attempt->reply, "password", detail);
}
