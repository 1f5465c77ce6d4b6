/* account_password: see the header. */
#include "operation/accounts/account_password.h"

#include "edge/crypto/password.h"
#include "operation/access/caller.h"
#include "segment/counts/hashers.h"

/* A worker that waits for a place serves nobody. */
enum { WAITING_PART = 4, WAIT_MS = 5000 };

/* A quarter of the workers, at least one, but one worker must be left for others. */
static int64_t waiting_most(int64_t workers, int64_t computing)
{
    int64_t most = workers / WAITING_PART, left = workers - computing - 1;
    if (most < 1)
        most = 1;
    return most < left ? most : left > 0 ? left : 0;
}

enum fault account_password_read(const struct reader *reader, const struct json *object, const char *member,
                                 bool is_needed, struct bytes *password_r)
{
    enum fault fault = reader_text(reader, object, member, password_r);
    bool is_long = password_r->size >= ACCOUNT_PASSWORD_LEAST && password_r->size <= ACCOUNT_PASSWORD_MOST;
    if (fault || is_long || (!password_r->data && !is_needed))
        return fault;
    return reader_wrong(reader, object, member, "A password of 8 to 1024 bytes is expected.");
}

static enum fault account_password_enter(struct attempt *attempt)
{
    const struct settings *settings = attempt->worker_context->settings;
    const struct reader reader = account_gate_reader(attempt);
    int64_t share = settings->workers * settings->argon2_share / 100, most = share > 0 ? share : 1;
    const struct hashers_room room = {
        .most = most, .waiting_most = waiting_most(settings->workers, most), .wait_ms = WAIT_MS};
    if (hashers_enter(attempt->worker_context->segment, &room, !account_gate_has_failed(attempt)))
        return FAULT_NONE;
    account_gate_give_back(attempt);
    return reader_busy(&reader, "argon2_share", settings->argon2_share);
}

enum fault account_password_set(struct attempt *attempt, struct draft *account, struct bytes password)
{
    struct account_kept *kept = account_gate_kept(attempt);
    if (!kept->made) {
        char digest[PASSWORD_DIGEST_MOST];
        enum fault fault = account_password_enter(attempt);
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
        enum fault fault = account_password_enter(attempt);
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
    account_gate_note_failure(attempt);
    return caller_refuse(attempt->worker_context, attempt->call, attempt->reply, "password", detail);
}
