/* hosts_run: each command is a short sequence of questions, which begins again with each answer: those that
 * were answered before are answered from the memo. */
#include "journal/hosts/hosts_run.h"

#include <string.h>

#include "base/clock.h"
#include "base/coding/siphash.h"

enum { TYPE_BYTES = 1, ROUNDS = 8 };

struct hosts_command {
    struct hosts *hosts;
    struct hosts_memo *memo;
    const struct records_command *command;
    struct records_found *found;
    enum records_outcome outcome; /* when it is done */
    bool is_asking;
    unsigned level; /* of the key; 0: it has none */
    size_t key_size;
    char key[CLUSTER_KEY_MOST];
    struct builder content;
};

/* --- questions --- */

/* NULL: it is not answered yet, or the outcome says why it never is. */
static const struct hosts_result *ask(struct hosts_command *run, struct cluster_request request)
{
    struct hosts_memo *memo = run->memo;
    if (memo->next < memo->count)
        return &memo->results[memo->next++];
    request.key = (struct bytes){run->key, run->key_size};
    request.level = run->level;
    run->outcome = RECORDS_BUSY;
    if (memo->count < HOSTS_RESULTS_MOST)
        run->is_asking = hosts_ask(run->hosts, memo, &request);
    if (run->is_asking && !memo->began_ms) {
        memo->began_ms = clock_present_ms();
        memo->most_ms = hosts_ttl_most_ms(run->hosts);
    }
    return NULL;
}

/* Another number for each stamp, as records have them. */
static uint64_t number_of_stamp(const struct cluster_stamp *stamp)
{
    static const struct siphash_key fixed = {{UINT64_C(0x7374616d7073206f), UINT64_C(0x66207265636f7264)}};
    unsigned char text[20];
    bytes_put_u64(text, stamp->version);
    bytes_put_u64(text + 8, stamp->number);
    memcpy(text + 16, &stamp->origin, sizeof stamp->origin);
    return siphash_short(&fixed, (struct bytes){(char *)text, sizeof text}) | 1;
}

static void hosts_run_describe(struct hosts_command *run, const struct hosts_result *result)
{
    struct bytes content = result->answer.content;
    *run->found = (struct records_found){.key = run->command->key,
                                         .expires_ms = result->end_ms,
                                         .stamp = number_of_stamp(&result->answer.stamp)};
    if (content.size < TYPE_BYTES)
        return;
    run->found->type = (enum records_type)content.data[0];
    run->found->content = (struct bytes){content.data + TYPE_BYTES, content.size - TYPE_BYTES};
    run->found->size = run->found->content.size;
    if (run->command->is_probe)
        run->found->content = NO_BYTES;
}

static enum records_outcome hosts_run_outcome_of(enum cluster_outcome outcome)
{
    switch (outcome) {
    case CLUSTER_OK:
        return RECORDS_OK;
    case CLUSTER_NOT_FOUND:
        return RECORDS_NOT_FOUND;
    case CLUSTER_NOT_FREE:
        return RECORDS_NOT_FREE;
    case CLUSTER_OUT_OF_MEMORY:
        return RECORDS_OUT_OF_MEMORY;
    case CLUSTER_OUT_OF_SHARE:
        return RECORDS_OUT_OF_SHARE;
    case CLUSTER_NO_PARTICIPANTS:
        return RECORDS_NO_PARTICIPANTS;
    case CLUSTER_OTHER_STAMP:
        return RECORDS_OTHER_STAMP;
    default:
        return RECORDS_UNKNOWN;
    }
}

/* The outcome of the command is that of the question.  False: it is not answered. */
static bool end_with(struct hosts_command *run, const struct hosts_result *result)
{
    if (!result)
        return false;
    run->outcome = hosts_run_outcome_of(result->answer.outcome);
    if (run->outcome == RECORDS_OK || run->outcome == RECORDS_NOT_FREE)
        hosts_run_describe(run, result);
    return true;
}

static const struct hosts_result *read_present(struct hosts_command *run)
{
    return ask(run, (struct cluster_request){.deed = CLUSTER_READ});
}

/* --- ends --- */

static int64_t left_at(const struct records_command *command, int64_t most_ms, int64_t now_ms)
{
    int64_t left = command->expires_ms ? command->expires_ms - now_ms : most_ms;
    if (!command->expires_ms && command->ends_by_ms && command->ends_by_ms - now_ms < left)
        left = command->ends_by_ms - now_ms;
    return left < 0 ? 0 : left;
}

/* What is left until the end of the command; 0: it has passed; -1: the outcome says why there is none.  Both
 * are decided when the message asks first: an answer must meet the question that it was given to. */
static int64_t left_ms(struct hosts_command *run)
{
    const struct hosts_memo *memo = run->memo;
    bool has_asked = memo->began_ms != 0;
    int64_t most_ms = has_asked ? memo->most_ms : hosts_ttl_most_ms(run->hosts);
    int64_t left = left_at(run->command, most_ms, clock_present_ms());
    if (has_asked && (!most_ms || left > most_ms))
        return most_ms ? most_ms : 1;
    if (has_asked && !left)
        return left_at(run->command, most_ms, memo->began_ms) ? 1 : 0;
    if (!most_ms)
        run->outcome = RECORDS_NO_PARTICIPANTS;
    else if (left > most_ms)
        run->outcome = RECORDS_OUT_OF_RANGE;
    return !most_ms || left > most_ms ? -1 : left;
}

/* --- commands --- */

static void run_get(struct hosts_command *run)
{
    (void)end_with(run, read_present(run));
}

/* The stamp that the command expects, in full; number 0: any.  False: there is no record with it, or it is
 * not known yet. */
static bool find_stamp(struct hosts_command *run, struct cluster_stamp *stamp_r)
{
    *stamp_r = (struct cluster_stamp){0};
    if (!run->command->stamp)
        return true;
    const struct hosts_result *result = read_present(run);
    if (!end_with(run, result) || run->outcome != RECORDS_OK)
        return false;
    *stamp_r = result->answer.stamp;
    if (run->found->stamp == run->command->stamp)
        return true;
    run->outcome = RECORDS_OTHER_STAMP;
    return false;
}

static void run_remove(struct hosts_command *run)
{
    struct cluster_request request = {.deed = CLUSTER_REMOVE};
    if (!find_stamp(run, &request.stamp))
        return;
    (void)end_with(run, ask(run, request));
    if (run->outcome == RECORDS_OK)
        *run->found = (struct records_found){0};
}

static void write_content(struct hosts_command *run, enum records_type type, struct bytes content)
{
    const char byte = (char)type;
    builder_clear(&run->content, 0);
    builder_add(&run->content, &byte, TYPE_BYTES);
    builder_add_bytes(&run->content, content);
}

static struct cluster_request request_of(const struct hosts_command *run, enum cluster_deed deed,
                                         int64_t ttl_ms)
{
    struct cluster_request request = {
        .deed = deed, .content = builder_bytes(&run->content), .ttl_ms = ttl_ms};
    const struct records_payer *payer = run->command->payer;
    if (payer) {
        request.payer = (struct cluster_payer){.rule = payer->rule, .caller = payer->caller};
        request.limits = (struct cluster_limits){.payers_bytes = payer->payers_bytes,
                                                 .rule_bytes = payer->rule_bytes,
                                                 .rule_records = payer->rule_records,
                                                 .caller_bytes = payer->caller_bytes,
                                                 .caller_records = payer->caller_records};
    }
    return request;
}

/* SET with `keeps_end`: of the present record the end stays. */
static void run_keeping(struct hosts_command *run, int64_t ttl_ms)
{
    for (int i = 0; i < ROUNDS; i++) {
        const struct hosts_result *present = read_present(run);
        if (!end_with(run, present) || (run->outcome != RECORDS_OK && run->outcome != RECORDS_NOT_FOUND))
            return;
        bool is_there = run->outcome == RECORDS_OK;
        bool is_other = run->command->stamp && (!is_there || run->found->stamp != run->command->stamp);
        if (is_other || (!is_there && run->command->is_only_present)) {
            run->outcome = is_there ? RECORDS_OTHER_STAMP : RECORDS_NOT_FOUND;
            return;
        }
        if (is_there && !run->command->may_overwrite) {
            run->outcome = RECORDS_NOT_FREE;
            return;
        }
        int64_t kept_ms = is_there ? present->end_ms - clock_present_ms() : ttl_ms;
        struct cluster_request request =
            request_of(run, is_there ? CLUSTER_CHANGE : CLUSTER_INSERT, kept_ms > 0 ? kept_ms : 1);
        request.stamp = is_there ? present->answer.stamp : request.stamp;
        if (!end_with(run, ask(run, request)))
            return;
        bool was_late = is_there ? run->outcome == RECORDS_OTHER_STAMP || run->outcome == RECORDS_NOT_FOUND
                                 : run->outcome == RECORDS_NOT_FREE;
        if (!was_late)
            return;
    }
    run->outcome = RECORDS_BUSY;
}

/* SET of whatever is there: a change, or else an insertion, or else a change. */
static void run_overwriting(struct hosts_command *run, int64_t ttl_ms)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (!end_with(run, ask(run, request_of(run, CLUSTER_CHANGE, ttl_ms))) ||
            run->outcome != RECORDS_NOT_FOUND)
            return;
        if (!end_with(run, ask(run, request_of(run, CLUSTER_INSERT, ttl_ms))) ||
            run->outcome != RECORDS_NOT_FREE)
            return;
    }
    run->outcome = RECORDS_BUSY;
}

/* SET of a record that has ended already: as if it had been set, and had ended at once. */
static void run_ended(struct hosts_command *run)
{
    const struct records_command *command = run->command;
    if (command->may_overwrite || command->stamp) {
        run_remove(run);
        if (run->outcome == RECORDS_NOT_FOUND && !command->is_only_present && !command->stamp)
            run->outcome = RECORDS_OK;
    } else if (end_with(run, read_present(run))) {
        run->outcome = run->outcome == RECORDS_OK          ? RECORDS_NOT_FREE
                       : run->outcome == RECORDS_NOT_FOUND ? RECORDS_OK
                                                           : run->outcome;
    }
}

static void run_set(struct hosts_command *run)
{
    const struct records_command *command = run->command;
    int64_t ttl_ms = left_ms(run);
    if (ttl_ms < 0)
        return;
    if (!ttl_ms) {
        run_ended(run);
        return;
    }
    write_content(run, command->type, command->content);
    if (command->keeps_end) {
        run_keeping(run, ttl_ms);
        return;
    }
    struct cluster_request request = request_of(run, CLUSTER_CHANGE, ttl_ms);
    if (command->stamp) {
        if (find_stamp(run, &request.stamp))
            (void)end_with(run, ask(run, request));
    } else if (!command->may_overwrite) {
        (void)end_with(run, ask(run, request_of(run, CLUSTER_INSERT, ttl_ms)));
    } else if (command->is_only_present) {
        (void)end_with(run, ask(run, request));
    } else {
        run_overwriting(run, ttl_ms);
    }
}

/* False: the outcome says why there is no sum. */
static bool add_up(struct hosts_command *run, char sum_r[8])
{
    const struct records_command *command = run->command;
    run->outcome = RECORDS_WRONG_TYPE;
    if (run->found->type == command->type && run->found->content.size == 8)
        run->outcome = records_add_up(command->type, run->found->content, command->content, sum_r);
    return run->outcome == RECORDS_OK;
}

/* ADD: the sum in place of what was read, or what is added in place of nothing. */
static void run_add(struct hosts_command *run)
{
    const struct records_command *command = run->command;
    int64_t ttl_ms = left_ms(run);
    for (int i = 0; i < ROUNDS && ttl_ms > 0; i++) {
        const struct hosts_result *present = read_present(run);
        char sum[8];
        if (!end_with(run, present) || (run->outcome != RECORDS_OK && run->outcome != RECORDS_NOT_FOUND))
            return;
        bool is_there = run->outcome == RECORDS_OK;
        if (is_there && command->stamp && run->found->stamp != command->stamp)
            run->outcome = RECORDS_OTHER_STAMP;
        else if (is_there && !add_up(run, sum))
            return;
        if ((!is_there && (!command->may_overwrite || command->stamp)) ||
            (is_there && run->outcome == RECORDS_OTHER_STAMP))
            return;
        write_content(run, command->type, is_there ? (struct bytes){sum, sizeof sum} : command->content);
        int64_t kept_ms = command->expires_ms || !is_there ? ttl_ms : present->end_ms - clock_present_ms();
        struct cluster_request request =
            request_of(run, is_there ? CLUSTER_CHANGE : CLUSTER_INSERT, kept_ms > 0 ? kept_ms : 1);
        request.stamp = is_there ? present->answer.stamp : request.stamp;
        if (!end_with(run, ask(run, request)))
            return;
        if (run->outcome == RECORDS_OK) { /* the answer to a change has no content */
            memcpy(run->memo->sum, run->content.data + TYPE_BYTES, sizeof run->memo->sum);
            run->found->type = command->type;
            run->found->content = (struct bytes){run->memo->sum, sizeof run->memo->sum};
            run->found->size = sizeof run->memo->sum;
            return;
        }
        if (run->outcome != RECORDS_OTHER_STAMP && run->outcome != RECORDS_NOT_FOUND &&
            run->outcome != RECORDS_NOT_FREE)
            return;
    }
    run->outcome = ttl_ms > 0 ? RECORDS_BUSY : ttl_ms == 0 ? RECORDS_OUT_OF_RANGE : run->outcome;
}

/* Each record has an end, so "no end" is a condition that none meets. */
static void run_expire(struct hosts_command *run)
{
    const struct records_command *command = run->command;
    struct cluster_request request = {.deed = CLUSTER_TOUCH, .ttl_ms = left_ms(run)};
    if (request.ttl_ms < 0)
        return;
    if (command->end_if) {
        const struct hosts_result *present = read_present(run);
        if (!end_with(run, present) || run->outcome != RECORDS_OK)
            return;
        bool is_met = !(command->end_if & RECORDS_END_ABSENT) &&
                      (!(command->end_if & RECORDS_END_EARLIER) || present->end_ms < command->expires_ms) &&
                      (!(command->end_if & RECORDS_END_LATER) || present->end_ms > command->expires_ms);
        if (!is_met) {
            run->outcome = RECORDS_NOT_FOUND;
            return;
        }
        request.stamp = present->answer.stamp;
    } else if (!find_stamp(run, &request.stamp)) {
        return;
    }
    if (!request.ttl_ms)
        request.deed = CLUSTER_REMOVE;
    (void)end_with(run, ask(run, request));
}

/* --- what they do not do --- */

static bool is_supported(const struct records_command *command)
{
    bool is_deed = command->deed == RECORDS_SET || command->deed == RECORDS_GET ||
                   command->deed == RECORDS_DELETE || command->deed == RECORDS_ADD ||
                   (command->deed == RECORDS_EXPIRE && command->expires_ms);
    bool moves_end = command->deed == RECORDS_GET && command->expires_ms;
    return is_deed && !moves_end && !command->more_count && !command->touch_s && !command->lease_ms &&
           !command->is_persisted && !command->is_listened && !command->timestamp_us;
}

static bool has_level(struct bytes key)
{
    return key.size > HOSTS_LEVEL_BYTES && key.data[0] == '@' && key.data[1] >= '0' && key.data[1] <= '9' &&
           key.data[2] == ':';
}

/* False: addresses have not so many levels.  That is decided when the message asks first. */
static bool read_level(struct hosts_command *run)
{
    struct bytes key = run->command->key;
    unsigned depth = hosts_depth(run->hosts);
    run->level = has_level(key) ? (unsigned)(key.data[1] - '0') : 0;
    return !has_level(key) || (run->level && (!depth || run->level <= depth || run->memo->began_ms));
}

/* The namespace, which of those that have had its code, and the key.  False: it is too long. */
static bool write_key(struct hosts_command *run, const struct hosts_space *space)
{
    size_t ns = space->ns.size, all = ns + 1 + HOSTS_MADE_BYTES + run->command->key.size;
    if (all > sizeof run->key)
        return false;
    memcpy(run->key, space->ns.data, ns);
    run->key[ns] = 0;
    bytes_put_u64((unsigned char *)run->key + ns + 1, space->made);
    memcpy(run->key + ns + 1 + HOSTS_MADE_BYTES, run->command->key.data, run->command->key.size);
    run->key_size = all;
    return true;
}

/* Decided when the message asks first, as ends are: meanwhile another host may have joined. */
static bool hosts_run_fits(const struct hosts_command *run)
{
    return run->memo->began_ms || run->command->content.size <= hosts_content_most(run->hosts);
}

bool hosts_run(struct hosts *hosts, struct hosts_memo *memo, const struct hosts_space *space,
               const struct records_command *command, enum records_outcome *outcome_r,
               struct records_found *found_r)
{
    struct hosts_command run = {.hosts = hosts, .memo = memo, .command = command, .found = found_r};
    *found_r = (struct records_found){0};
    run.outcome = !is_supported(command) || space->is_encrypted ? RECORDS_UNSUPPORTED
                  : !hosts                                      ? RECORDS_NO_PARTICIPANTS
                  : !write_key(&run, space) || !hosts_run_fits(&run) || !read_level(&run)
                      ? RECORDS_OUT_OF_RANGE
                      : RECORDS_OK;
    if (run.outcome == RECORDS_OK && command->deed == RECORDS_GET)
        run_get(&run);
    else if (run.outcome == RECORDS_OK && command->deed == RECORDS_DELETE)
        run_remove(&run);
    else if (run.outcome == RECORDS_OK && command->deed == RECORDS_SET)
        run_set(&run);
    else if (run.outcome == RECORDS_OK && command->deed == RECORDS_ADD)
        run_add(&run);
    else if (run.outcome == RECORDS_OK)
        run_expire(&run);
    builder_free(&run.content);
    *outcome_r = run.outcome;
    return !run.is_asking;
}
