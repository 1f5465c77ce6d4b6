/* cmd_ns_workers: `stampctl ns workers`: the queues that external workers serve, and their keys. */
#include "control/ns/cmd_ns.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/cmd_key.h"
#include "control/message.h"
#include "control/record.h"
#include "edge/crypto/crypto.h"
#include "model/task/worker_queues.h"

/* --- the list --- */

/* Words of an array with blanks between them. */
static struct bytes list_words(struct arena *arena, const struct json *array)
{
    struct builder words = {0};
    for (const struct json *one = array ? array->first : NULL; one; one = one->next) {
        if (words.size)
            builder_add_text(&words, " ");
        builder_add_bytes(&words, one->value);
    }
    struct bytes result = {words.size ? arena_copy(arena, words.data, words.size) : "", words.size};
    builder_free(&words);
    return result;
}

static const char *requests_word(enum worker_requests requests)
{
    static const char *const words[] = {[WORKER_REQUESTS_NOBODY] = "nobody",
                                        [WORKER_REQUESTS_ACCOUNTS] = "accounts",
                                        [WORKER_REQUESTS_ANYBODY] = "anybody"};
    return words[requests];
}

static void print_queue(struct arena *arena, const struct worker_queue *queue, bool is_json)
{
    struct bytes ops = list_words(arena, queue->operations), roles = list_words(arena, queue->roles);
    struct record record = {0};
    if (is_json) {
        record_add_i64(&record, "qn", queue->number);
        record_add_json(&record, "ops", queue->operations ? queue->operations->text : bytes_of("[]"));
        record_add_json(&record, "roles", queue->roles ? queue->roles->text : bytes_of("[]"));
        record_add_bool(&record, "key", queue->key.size);
        record_add_word(&record, "request", requests_word(queue->requests));
        record_add_i64(&record, "claim_s", queue->claim_s);
        record_add_text(&record, "retries", queue->retries);
        record_print(&record);
        return;
    }
    printf("%d  %s  %s%s%.*s  requested by %s  claims of %lld s%s%.*s\n", queue->number,
           ops.size ? arena_printf(arena, "%.*s", (int)ops.size, ops.data) : "no operations",
           queue->key.size ? "a key" : "no key", roles.size ? ", roles " : "", (int)roles.size, roles.data,
           requests_word(queue->requests), (long long)queue->claim_s, queue->retries.size ? "  retries " : "",
           (int)queue->retries.size, queue->retries.size ? queue->retries.data : "");
}

static bool print_queues(struct control *control, const char *code, bool is_json)
{
    const struct json *present;
    const struct worker_queues *queues;
    if (!cmd_ns_read(control, code, "workers", &present))
        return false;
    if (!present)
        return true;
    if (!worker_queues_read(control->arena, present, &queues))
        return message_refuse("%s: workers: %s", code, WORKER_QUEUES_EXPECTED);
    for (size_t i = 0; i < queues->count; i++)
        print_queue(control->arena, &queues->queues[i], is_json);
    return true;
}

/* --- a queue --- */

struct queue_change {
    const char *code;
    int64_t number, claim_s;                     /* claim_s 0: not given */
    const char *ops, *roles, *request, *retries; /* NULL: not given */
    const char *key;                             /* digest; NULL: not given */
    bool is_removed;
};

/* What is not given stays as it is written. */
static void keep(struct builder *out, const struct json *former, const char *name)
{
    const struct json *value = json_member(former, name);
    if (value) {
        builder_printf(out, ",\"%s\":", name);
        builder_add_bytes(out, value->text);
    }
}

/* An array of the words of a text. */
static void set_queue_words(struct builder *out, const struct json *former, const char *name,
                            const char *text)
{
    if (!text) {
        keep(out, former, name);
        return;
    }
    builder_printf(out, ",\"%s\":[", name);
    for (bool is_first = true; *(text += strspn(text, " ,")); is_first = false) {
        size_t size = strcspn(text, " ,");
        if (!is_first)
            builder_add_text(out, ",");
        json_add_string(out, (struct bytes){text, size});
        text += size;
    }
    builder_add_text(out, "]");
}

static void set_queue_text(struct builder *out, const struct json *former, const char *name, const char *text)
{
    if (text)
        json_add_member(out, name, bytes_of(text));
    else
        keep(out, former, name);
}

static void add_queue(struct builder *out, const struct queue_change *change, const struct json *former)
{
    builder_printf(out, "{\"qn\":%lld", (long long)change->number);
    set_queue_words(out, former, "ops", change->ops);
    set_queue_text(out, former, "key", change->key);
    set_queue_words(out, former, "roles", change->roles);
    set_queue_text(out, former, "request", change->request);
    if (change->claim_s)
        builder_printf(out, ",\"claim_s\":%lld", (long long)change->claim_s);
    else
        keep(out, former, "claim_s");
    set_queue_text(out, former, "retries", change->retries);
    builder_add_text(out, "}");
}

static bool is_of_queue(const struct json *queue, int64_t number)
{
    int64_t found;
    const struct json *value = json_member(queue, "qn");
    return value && json_is_i64(value, &found) && found == number;
}

/* The other queues stay as they are written. */
static bool edit_queues(struct control *control, const struct json *present, void *context,
                        struct bytes *value_r)
{
    const struct queue_change *change = context;
    struct json *all = NULL;
    const struct json *former = NULL;
    struct builder out = {0};
    if (present && (!json_is_tree(control->arena, present->text, 32, 4, &all) || all->kind != JSON_ARRAY))
        return message_refuse("%s: workers: %s", change->code, WORKER_QUEUES_EXPECTED);
    for (const struct json *one = all ? all->first : NULL; one; one = one->next) {
        if (is_of_queue(one, change->number)) {
            former = one;
            continue;
        }
        builder_add(&out, out.size ? "," : "[", 1);
        builder_add_bytes(&out, one->text);
    }
    if (!change->is_removed) {
        builder_add(&out, out.size ? "," : "[", 1);
        add_queue(&out, change, former);
    }
    if (out.size)
        builder_add_text(&out, "]");
    *value_r = out.size ? arena_keep(control->arena, builder_bytes(&out)) : NO_BYTES;
    builder_free(&out);
    return true;
}

static int change_queue(struct control *control, struct queue_change *change, const char *new_key)
{
    char key[CMD_KEY_DIGITS + 1], digest[CRYPTO_SHA256_HEX + 1];
    if (new_key) {
        if (!cmd_key_make(new_key, key))
            return CONTROL_FAILED;
        crypto_sha256_hex((struct bytes){key, CMD_KEY_DIGITS}, digest);
        change->key = digest;
    }
    bool is_done = cmd_ns_edit(control, change->code, "workers", edit_queues, change);
    if (!is_done && new_key)
        unlink(new_key);
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}

int cmd_ns_workers(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "ns workers", "CODE [QUEUE]", "Set a queue that external workers serve; without QUEUE, list them.",
        "QUEUE is its number, 16 to 31.  What is not given stays as it is; other queues stay, too.\n"
        "--new-key replaces the key of the queue: workers send what is in FILE.\n");
    struct queue_change change = {0};
    const char *new_key = NULL;
    bool is_json = false;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        RECORD_JSON_LINE(&is_json),
        OPTION_TEXT("ops", "NAMES", &change.ops, "Operations of its tasks, separated by blanks."),
        OPTION_TEXT("new-key", "FILE", &new_key, "Make a key of its workers, in a new file."),
        OPTION_TEXT("roles", "NAMES", &change.roles, "Roles whose accounts may serve it."),
        OPTION_TEXT("request", "WHO", &change.request,
                    "Who may request its tasks: nobody, accounts or anybody."),
        OPTION_NUMBER("claim", "SECONDS", &change.claim_s, 1, WORKER_QUEUES_CLAIM_MOST_S,
                      "How long a claim lasts (default: 60)."),
        OPTION_TEXT("retries", "DELAYS", &change.retries, "Delays before retries, as \"10s..1hx20 ~20\"."),
        OPTION_FLAG("none", &change.is_removed, "Remove the queue."),
    };
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    bool is_given =
        change.ops || new_key || change.roles || change.request || change.claim_s || change.retries;
    change.code = words[0];
    if (!words[1] && !is_given && !change.is_removed)
        return print_queues(control, words[0], is_json) ? CONTROL_DONE : CONTROL_FAILED;
    if (!words[1] || is_given == change.is_removed || is_json)
        return message_end(CONTROL_WRONG,
                           "ns workers: expected CODE alone, or CODE QUEUE with --none or what is to be set");
    struct bytes number = bytes_of(words[1]);
    if (!bytes_to_i64(number, &change.number) || change.number < WORKER_QUEUES_FIRST ||
        change.number >= WORKER_QUEUES_END)
        return message_end(CONTROL_WRONG, "ns workers: \"%s\": expected a number from %d to %d", words[1],
                           WORKER_QUEUES_FIRST, WORKER_QUEUES_END - 1);
    return change_queue(control, &change, new_key);
}
