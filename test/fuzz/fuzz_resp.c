/* fuzz_resp: what clients of Redis send to stamp-journal, one request after the other, as two connections run
 * them: a line or an array of an even size is of the first, which may write all keys; the others are of the
 * second, which may write some, read some, and has terms.
 *
 * Besides not crashing: what is whole stays so with more bytes behind it, and is partial with fewer; each
 * request has its replies, which are RESP of the connection's version; what is listened to is reported; the
 * memory of the records fits together.  Nothing of one input remains for the next. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal/resp/resp_run.h"
#include "journal/resp/resp_scan.h"
#include "records/records_changes.h"

const char fuzz_target[] = "resp";

enum { VALUE_MOST = 4096, MEMORY_BYTES = 1 << 19, SESSIONS = 2, OUT_BYTES = 1 << 16, PARTS_MOST = 1100 };

#define KEY    "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683" /* "key" */
#define NARROW "5eda958e9ddee7721fb71e7a7618c64dbf20cc77b06ba4e4d2269d6c3e50655b" /* "narrow" */
#define KEY_LINES                                                                                            \
    "lab write " KEY "\nlab write " NARROW                                                                   \
    " p. ttl_ms=5000 ttl_most_ms=60000 bytes=4000 records=5\nlab read " NARROW " q.\noff write " KEY "\n"

struct world {
    struct settings settings;
    struct journal_keys *keys;
    struct records *records;
    struct resp_cursors *cursors;
    struct journal_session sessions[SESSIONS];
    struct builder out;
};

static void serve(struct world *world)
{
    static const struct records_state states[] = {{.ns = BYTES("lab"), .state = NS_ON},
                                                  {.ns = BYTES("off"), .state = NS_OFF}};
    struct records_reading reading;
    records_state_begin(world->records, &reading);
    records_state_apply(world->records, &reading, states, COUNT_OF(states));
}

static void close_session(struct journal_session *session)
{
    resp_run_close(session->resp);
    session->resp = NULL;
}

static void open_session(struct world *world, size_t number)
{
    struct journal_session *session = &world->sessions[number];
    close_session(session);
    *session = (struct journal_session){.settings = &world->settings,
                                        .records = world->records,
                                        .keys = world->keys,
                                        .cursors = world->cursors,
                                        .resp = resp_run_open()};
    snprintf(session->owner, sizeof session->owner, "fuzz%zu", number);
    bool is_known = journal_session_enter(session, BYTES("lab"), number ? BYTES("narrow") : BYTES("key"));
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
    world->settings.record_state_s = 300;
    snprintf(path, sizeof path, "%s/records", folder);
    bool has_records = records_open(&world->records, path, MEMORY_BYTES, 60, problem, sizeof problem);
    unlink(path);
    rmdir(folder);
    assert(has_records);
    world->cursors = resp_scan_open();
    serve(world);
    for (size_t i = 0; i < SESSIONS; i++)
        open_session(world, i);
}

static void close_world(struct world *world)
{
    for (size_t i = 0; i < SESSIONS; i++)
        close_session(&world->sessions[i]);
    resp_scan_close(world->cursors);
    records_check(world->records);
    records_close(world->records);
    builder_clear(&world->out, OUT_BYTES);
}

/* --- replies --- */

static int64_t read_head(struct bytes *rest)
{
    const char *end = rest->size ? memchr(rest->data, '\n', rest->size) : NULL;
    assert(end && end > rest->data && end[-1] == '\r');
    struct bytes text = {rest->data + 1, (size_t)(end - rest->data) - 2};
    bool is_number = *rest->data == ':' || *rest->data == '$' || *rest->data == '*' || *rest->data == '%' ||
                     *rest->data == '>';
    int64_t number = 0;
    bool is_sound = !is_number || resp_to_integer(text, &number);
    assert(is_sound);
    rest->size -= (size_t)(end + 1 - rest->data);
    rest->data = end + 1;
    return number;
}

/* One reply, without a recursion that the input could make deep: what is still to be read is counted. */
static void pass_reply(struct bytes *rest, int version)
{
    for (int64_t left = 1; left > 0; left--) {
        char mark = rest->size ? *rest->data : 0;
        assert(strchr(version == 3 ? "+-:$*_%>" : "+-:$*", mark) && mark);
        int64_t number = read_head(rest);
        if (mark == '$' && number >= 0) {
            bool is_whole = rest->size >= (size_t)number + 2 && memcmp(rest->data + number, "\r\n", 2) == 0;
            assert(is_whole);
            rest->data += number + 2;
            rest->size -= (size_t)number + 2;
        }
        left += mark == '*' || mark == '>' ? number : mark == '%' ? 2 * number : 0;
    }
}

static size_t count_replies(const struct builder *out, size_t start, int version)
{
    struct bytes rest = {builder_bytes(out).data + start, out->size - start};
    size_t count = 0;
    for (; rest.size; count++)
        pass_reply(&rest, version);
    return count;
}

/* --- requests --- */

static bool is_subscription(const struct journal_session *session)
{
    struct bytes word = resp_session_word(session, 0);
    return resp_is(word, "subscribe") || resp_is(word, "psubscribe") || resp_is(word, "unsubscribe") ||
           resp_is(word, "punsubscribe");
}

static enum journal_next run(struct world *world, struct journal_session *session)
{
    size_t start = world->out.size, words = resp_session_count(session);
    int former = session->resp->version;
    enum journal_next next = resp_run(session, &world->out);
    for (int i = 0; next == JOURNAL_PART; i++) {
        assert(i < PARTS_MOST);
        next = resp_run(session, &world->out);
    }
    assert(next == JOURNAL_GO_ON || next == JOURNAL_CLOSE);
    assert(!session->resp->has_begun);
    int version = session->resp->version == former ? former : 3; /* the reply to HELLO has the new one */
    size_t replies = count_replies(&world->out, start, version);
    assert(words && is_subscription(session) ? replies >= 1 : replies == (words > 0));
    return next;
}

static void report(struct world *world)
{
    for (size_t i = 0; i < SESSIONS; i++) {
        struct journal_session *session = &world->sessions[i];
        size_t start = world->out.size;
        if (!session->resp->subscription_count)
            continue;
        session->cost = 0;
        enum resp_report done = resp_listener_report(session, start + OUT_BYTES, 1000000, &world->out);
        count_replies(&world->out, start, session->resp->version);
        if (done == RESP_OVERTAKEN)
            open_session(world, i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world world;
    struct bytes rest = {(const char *)data, size};
    struct resp_reader shorter = {0};
    const struct resp_limits limits = {RESP_WORDS_MOST, VALUE_MOST, VALUE_MOST + RESP_EXTRA_BYTES};
    size_t used;
    open_world(&world);
    for (bool is_over = false; rest.size && !is_over;) {
        size_t number = rest.data[0] == '*' && rest.size > 1 && rest.data[1] % 2;
        struct journal_session *session = &world.sessions[number];
        size_t start = world.out.size;
        enum resp_reading reading = resp_run_read(session, rest, &used, &world.out);
        is_over = reading != RESP_WHOLE;
        if (is_over) {
            assert(count_replies(&world.out, start, 2) <= 1);
            break;
        }
        assert(used && used <= rest.size);
        resp_next(&shorter);
        enum resp_reading partial = resp_read(&shorter, (struct bytes){rest.data, used - 1}, &limits);
        assert(partial == RESP_PARTIAL || !session->caller.ns.data);
        enum journal_next next = run(&world, session);
        resp_next(&session->resp->reader);
        if (next == JOURNAL_CLOSE)
            open_session(&world, number); /* the client comes again */
        report(&world);
        rest.data += used;
        rest.size -= used;
    }
    resp_free(&shorter);
    close_world(&world);
    return 0;
}
