/* fuzz_journal: what clients of stamp-journal send: messages, one after the other, as two connections run
 * them, one for the even and one for the odd first byte of the identifier.  The first may write all keys of
 * its namespace; the second some, and AUTH takes it into namespaces that are not fully served.
 *
 * Besides not crashing: a message that is whole stays whole with more bytes behind it, and is partial with
 * fewer; each has the answers that it must have, and the C client can read them; what a connection listens
 * to is reported; the memory of the records fits together.  Of an end of a task that waits, both requests and
 * the answer are JSON as the server and the client expect it.  Nothing of one input remains for the next. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "journal/journal_ends.h"
#include "journal/journal_run.h"
#include "journal_client/journal_wire.h"
#include "records/records_state.h"

const char fuzz_target[] = "journal";

enum { VALUE_MOST = 4096, MEMORY_BYTES = 1 << 19, SESSIONS = 2, OUT_BYTES = 1 << 16 };

#define KEY    "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683" /* "key" */
#define NARROW "5eda958e9ddee7721fb71e7a7618c64dbf20cc77b06ba4e4d2269d6c3e50655b" /* "narrow" */
#define KEY_LINES                                                                                            \
    "lab write " KEY "\nlab write " NARROW " p.\nlab read " NARROW " q.\n"                                   \
    "ro write " KEY "\noff write " KEY "\ngone write " KEY "\nfew write " KEY "\nnone write " KEY "\n"

struct world {
    struct settings settings;
    struct journal_keys *keys;
    struct records *records;
    struct journal_session sessions[SESSIONS];
    struct builder out;
};

static void serve(struct world *world)
{
    static const struct quota_rate few = {.count = 3, .period_ms = 3600000, .burst = 3};
    const struct records_state states[] = {
        {.ns = BYTES("lab"), .state = NS_ON},
        {.ns = BYTES("ro"), .state = NS_READONLY, .message = BYTES("Until noon.")},
        {.ns = BYTES("off"), .state = NS_OFF},
        {.ns = BYTES("gone"), .state = NS_GONE},
        {.ns = BYTES("few"), .state = NS_ON, .rates = {[RECORDS_REQUESTS] = few}}};
    struct records_reading reading;
    records_state_begin(world->records, &reading);
    records_state_apply(world->records, &reading, states, COUNT_OF(states));
}

static void open_session(struct world *world, size_t number)
{
    struct journal_session *session = &world->sessions[number];
    struct bytes key = number ? BYTES("narrow") : BYTES("key");
    journal_listener_free(&session->listener);
    *session = (struct journal_session){
        .settings = &world->settings, .records = world->records, .keys = world->keys};
    snprintf(session->owner, sizeof session->owner, "fuzz%zu", number);
    memcpy(session->key, key.data, key.size);
    bool is_known = journal_keys_enter(world->keys, BYTES("lab"), key, &session->caller);
    assert(is_known);
}

static void open_keys(struct world *world, const char *folder)
{
    char path[64], problem[300] = "";
    snprintf(path, sizeof path, "%s/keys", folder);
    FILE *file = fopen(path, "w");
    assert(file && fputs(KEY_LINES, file) >= 0 && fclose(file) == 0);
    bool has_keys = journal_keys_load(&world->keys, path, problem, sizeof problem);
    unlink(path);
    assert(has_keys);
}

static void open_world(struct world *world)
{
    char folder[] = "/dev/shm/stampd-fuzz-XXXXXX", path[64], problem[300] = "";
    bool is_made = mkdtemp(folder) != NULL;
    assert(is_made);
    if (!world->keys)
        open_keys(world, folder);
    world->settings.limit_content_bytes = VALUE_MOST;
    world->settings.dhop_future_ms = 5000;
    world->settings.record_state_s = 300;
    snprintf(path, sizeof path, "%s/records", folder);
    bool has_records = records_open(&world->records, path, MEMORY_BYTES, 60, problem, sizeof problem);
    unlink(path);
    rmdir(folder);
    assert(has_records);
    serve(world);
    for (size_t i = 0; i < SESSIONS; i++)
        open_session(world, i);
}

static void close_world(struct world *world)
{
    for (size_t i = 0; i < SESSIONS; i++)
        journal_listener_free(&world->sessions[i].listener);
    records_check(world->records);
    records_close(world->records);
    builder_clear(&world->out, OUT_BYTES);
}

/* Reads the answers behind `start` as a client does; how many there are. */
static size_t count_answers(const struct builder *out, size_t start, bool is_notice, unsigned identifier)
{
    size_t count = 0;
    while (start < out->size) {
        struct stampd_journal_answer answer;
        struct stampd_journal_record record;
        ssize_t size =
            journal_wire_read((const unsigned char *)out->data + start, out->size - start, &answer);
        assert(size > 0);
        assert(!(answer.flags & STAMPD_JOURNAL_LISTEN) == !is_notice);
        assert(is_notice || answer.identifier == identifier);
        while (stampd_journal_next_record(&answer, &record) == 0)
            assert(record.key.size <= RECORDS_KEY_MOST && record.value.size <= VALUE_MOST);
        assert(answer.count == 0 && answer.records.size == 0);
        start += (size_t)size;
        count++;
    }
    return count;
}

/* --- ends of tasks --- */

static const struct json *read_object(struct arena *arena, const struct builder *text)
{
    static const struct json_limits limits = {.depth = 300, .tree_depth = 2};
    struct json_problem problem;
    struct json *root = NULL;
    enum fault fault = json_read(arena, builder_bytes(text), &limits, &root, &problem);
    assert(fault == FAULT_NONE && root->kind == JSON_OBJECT);
    return root;
}

/* The value is the param of an end, and both answers of a server. */
static void split(struct bytes value)
{
    struct arena *arena = arena_create("split");
    struct builder end = {0}, following = {0}, answer = {0};
    int64_t wait_s = 0;
    if (journal_ends_split(value, &end, &following)) {
        journal_ends_add_wait(&following, 7);
        const struct json *take = json_member(read_object(arena, &end), "take");
        const struct json *later = read_object(arena, &following), *wait = json_member(later, "wait");
        const struct json *apart = json_member(take, "apart");
        assert(apart && apart->kind == JSON_TRUE && json_member(take, "wait"));
        assert(json_member(later, "after") && wait && json_is_i64(wait, &wait_s) && wait_s == 7);
        bool is_split = journal_ends_split(builder_bytes(&end), &answer, &answer);
        assert(!is_split && !answer.size);
    }
    wait_s = journal_ends_wait_s(value);
    assert(wait_s >= 0);
    journal_ends_join(&answer, value, value, 5);
    const struct json *out = json_member(read_object(arena, &answer), "out");
    assert(json_member(out, "tasks"));
    builder_free(&end);
    builder_free(&following);
    builder_free(&answer);
    arena_destroy(arena);
}

/* NOP has no answer; with an odd timestamp it moves the configurations instead, as another process does. */
static enum journal_next run(struct world *world, struct journal_session *session,
                             const struct journal_request *request)
{
    size_t start = world->out.size, answers = request->function > JOURNAL_QUIT;
    if (request->function == JOURNAL_NOP && request->timestamp & 1)
        records_state_move(world->records, BYTES("lab"));
    enum journal_next next = journal_run(session, request, &world->out);
    if (next == JOURNAL_WAIT) {
        assert(world->out.size == start);
        session->is_overdue = request->identifier & 0x200;
        if (!session->is_overdue)
            serve(world);
        next = journal_run(session, request, &world->out);
        session->is_overdue = false;
        assert(next != JOURNAL_WAIT);
    }
    if (next == JOURNAL_PASS) {
        assert(world->out.size == start && journal_run_operation(request->function) && *session->key);
        split(request->value);
        journal_run_answer(&world->out, request, request->flags & JOURNAL_DATA ? "SERVER" : "",
                           request->value);
    }
    assert(count_answers(&world->out, start, false, request->identifier) == answers);
    return next;
}

static void report(struct world *world)
{
    for (size_t i = 0; i < SESSIONS; i++) {
        struct journal_session *session = &world->sessions[i];
        size_t start = world->out.size, before = session->listener.count;
        bool is_all = journal_run_report(session, SIZE_MAX, &world->out);
        size_t notices = count_answers(&world->out, start, true, 0);
        assert(session->listener.count + notices == before);
        assert(!is_all || !journal_listener_has_news(&session->listener));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world world;
    struct bytes rest = {(const char *)data, size};
    struct journal_request request, shorter;
    size_t used, other;
    open_world(&world);
    while (rest.size && journal_message_read(rest, VALUE_MOST, &request, &used) == JOURNAL_WHOLE) {
        size_t number = request.identifier >> 8 & 1;
        assert(used >= JOURNAL_FIXED_BYTES && used <= rest.size);
        enum journal_reading reading =
            journal_message_read((struct bytes){rest.data, used - 1}, VALUE_MOST, &shorter, &other);
        assert(reading == JOURNAL_PARTIAL);
        if (run(&world, &world.sessions[number], &request) == JOURNAL_CLOSE)
            open_session(&world, number); /* the client comes again */
        report(&world);
        rest.data += used;
        rest.size -= used;
    }
    close_world(&world);
    return 0;
}
