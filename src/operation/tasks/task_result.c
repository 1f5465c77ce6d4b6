/* task_result: the part of the body that belongs to the attempt. */
#include "operation/tasks/task_result.h"

#include "document/transaction.h"
#include "operation/reply.h"

enum { REPORT_MOST = 2000 };

enum fault task_result_keep(struct attempt_commit *commit UNUSED, struct attempt *attempt)
{
    const struct builder *body = attempt->reply->body;
    size_t size = body->size - attempt->out;
    bool is_kept = size && (int64_t)size <= attempt->worker_context->settings->task_result_bytes &&
                   !attempt->operation->is_bare && !transaction_checkpoint(attempt->transaction).data;
    attempt->fence->result =
        is_kept ? (struct bytes){arena_copy(attempt->call->arena, body->data + attempt->out, size), size}
                : NO_BYTES;
    return FAULT_NONE;
}

struct bytes task_result_report(struct arena *arena, const struct reply *reply)
{
    struct builder words = {0};
    builder_add_bytes(&words, bytes_of(reply_words(reply)));
    if (reply->detail)
        builder_printf(&words, " %s", reply->detail);
    for (int i = 0; i < reply->argument_count; i++)
        builder_printf(&words, "%s%s", i ? ", " : " (", reply->arguments[i]);
    if (reply->argument_count)
        builder_add_text(&words, ")");
    size_t size = words.size < REPORT_MOST ? words.size : REPORT_MOST;
    while (size && !bytes_is_utf8((struct bytes){words.data, size}))
        size--;
    struct bytes report = {arena_copy(arena, words.data, size), size};
    builder_free(&words);
    return report;
}

const char *task_result_word(enum claim_result result)
{
    static const char *const words[] = {
        [CLAIM_GONE] = "gone",     [CLAIM_WAITING] = "waiting", [CLAIM_RUNNING] = "running",
        [CLAIM_TURN] = "turn",     [CLAIM_BUSY] = "busy",       [CLAIM_EXTERNAL] = "external",
        [CLAIM_PAUSED] = "paused", [CLAIM_LIMITED] = "limited", [CLAIM_ELSEWHERE] = "waiting"};
    assert(result != CLAIM_DONE);
    return words[result];
}
