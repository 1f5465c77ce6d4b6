/* once: the stamp of the session, and answers kept under an Idempotency-Key, against rows in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "model/document/stamp.h"
#include "fake_store.h"
#include "segment/slots.h"
#include "store/documents/store_commit.h"
#include "store/documents/store_idempotency.h"
#include "operation/reply.h"
#include "worker_context_world.h"

static int start(void **state UNUSED)
{
    static const struct settings limits = {.limit_answer_bytes = 4 << 20,
                                           .limit_items = 100000,
                                           .limit_tombstones = 100000,
                                           .dhop_future_ms = 5000,
                                           .dhop_past_s = 3600,
                                           .idempotency_s = 100,
                                           .limit_kept_bytes = 100,
                                           .limit_content_bytes = 100,
                                           .limit_document_bytes = 575,
                                           .limit_documents = 32,
                                           .limit_name_bytes = 16,
                                           .limit_syncs = 50};
    if (worker_context_world_open(&limits))
        return -1;
    configure("{\"access\":\"open\"}");
    return 0;
}

static struct call call_of(const char *operation, const char *param, const char *key)
{
    return (struct call){.operation = bytes_of(operation),
                         .param = param ? parse(param) : NULL,
                         .idempotency_key = bytes_of(key)};
}

static enum fault run(struct call call)
{
    reply = (struct reply){.body = &body, .is_replayed = true};
    return run_in_world(&call);
}

/* A put of the document `id` with that content, and its answer. */
static const char *put_of(const char *id, const char *content)
{
    return arena_printf(arena,
                        "{\"docs\":[{\"c\":\"Doc\",\"id\":\"%s\",\"items\":[{\"c\":\"Sta\",\"j\":%s}]}]}", id,
                        content);
}

static enum fault put(const char *id, const char *content, const char *key)
{
    return run(call_of("put", put_of(id, content), key));
}

static const char *answer(void)
{
    return arena_copy(arena, body.data, body.size);
}

static const char *answer_of(const char *id, int64_t version)
{
    return arena_printf(arena, "{\"out\":{\"v\":%lld,\"docs\":[{\"c\":\"Doc\",\"id\":\"%s\",\"v\":%lld}]}}",
                        (long long)version, id, (long long)version);
}

/* --- the answer kept --- */

static void a_request_sent_again_gets_its_answer_again(void **state UNUSED)
{
    assert_int_equal(put("a", "1", "k1"), FAULT_NONE);
    assert_false(reply.is_replayed);
    const char *first = answer();
    int64_t version = fake_version("Doc", "a");
    assert_string_equal(first, answer_of("a", version));
    assert_non_null(fake_kept("k1"));
    /* what others did meanwhile neither changes the answer nor is undone */
    assert_int_equal(put("a", "2", NULL), FAULT_NONE);
    int64_t later = fake_version("Doc", "a");
    assert_true(later > version);
    int commits = fake.commits;
    assert_int_equal(put("a", "1", "k1"), FAULT_NONE);
    assert_string_equal(answer(), first);
    assert_true(reply.is_replayed);
    assert_string_equal(reply.mime, "application/json");
    assert_int_equal(fake.commits, commits);
    assert_true(fake_version("Doc", "a") == later);
    /* another key is another request */
    assert_int_equal(put("a", "1", "k2"), FAULT_NONE);
    assert_false(reply.is_replayed);
    assert_true(fake_version("Doc", "a") > later);
}

static void without_a_key_nothing_is_looked_for(void **state UNUSED)
{
    assert_int_equal(put("a", "1", NULL), FAULT_NONE);
    assert_int_equal(put("a", "2", NULL), FAULT_NONE);
    assert_false(reply.is_replayed);
    assert_int_equal(fake.finds, 0);
    assert_int_equal(fake.commits, 2);
}

static void what_changes_nothing_is_kept_too(void **state UNUSED)
{
    assert_int_equal(put("a", "1", NULL), FAULT_NONE);
    int64_t version = fake_version("Doc", "a");
    assert_int_equal(put("a", "1", "same"), FAULT_NONE);
    assert_string_equal(answer(), answer_of("a", version));
    assert_int_equal(fake.commits, 2);
    assert_true(fake_version("Doc", "a") == version);
    assert_non_null(fake_kept("same"));
    assert_int_equal(fake_kept("same")->version, 0);
    assert_int_equal(put("a", "2", NULL), FAULT_NONE);
    assert_int_equal(put("a", "1", "same"), FAULT_NONE);
    assert_string_equal(answer(), answer_of("a", version));
    assert_true(reply.is_replayed);
    /* no document at all */
    assert_int_equal(run(call_of("put", "{\"docs\":[]}", "none")), FAULT_NONE);
    assert_string_equal(answer(), "{\"out\":{\"v\":0,\"docs\":[]}}");
    assert_int_equal(run(call_of("put", "{\"docs\":[]}", "none")), FAULT_NONE);
    assert_true(reply.is_replayed);
}

static void another_request_is_refused(void **state UNUSED)
{
    assert_int_equal(put("a", "1", "k"), FAULT_NONE);
    int commits = fake.commits;
    assert_int_equal(put("a", "2", "k"), FAULT_AKEYREUSED);
    assert_string_equal(reply.arguments[0], "k");
    assert_int_equal(reply.phase, PHASE_BEFORE);
    assert_false(reply.is_replayed);
    assert_int_equal(body.size, 0);
    struct call call = call_of("put", put_of("a", "1"), "k");
    const struct bytes path[] = {BYTES("x")};
    call.path = path;
    call.path_count = 1;
    assert_int_equal(run(call), FAULT_AKEYREUSED);
    call = call_of("put", put_of("a", "1"), "k");
    const struct call_file file = {BYTES("f"), BYTES("a.txt"), BYTES("text/plain"), BYTES("content")};
    call.files = &file;
    call.file_count = 1;
    assert_int_equal(run(call), FAULT_AKEYREUSED);
    call = call_of("put", put_of("a", "1"), "k");
    call.key = BYTES("");
    assert_int_equal(run(call), FAULT_AKEYREUSED);
    call.key = NO_BYTES;
    call.admin = BYTES("open sesame");
    assert_int_equal(run(call), FAULT_AKEYREUSED);
    /* what does not make the answer may differ */
    call.admin = NO_BYTES;
    call.lang = BYTES("fr");
    assert_int_equal(run(call), FAULT_NONE);
    assert_true(reply.is_replayed);
    assert_int_equal(fake.commits, commits);
}

static void each_account_has_its_own_keys(void **state UNUSED)
{
    struct call call = call_of("put", put_of("a", "1"), "k");
    call.account = BYTES("zoe");
    assert_int_equal(put("a", "2", "k"), FAULT_NONE);
    assert_int_equal(run(call), FAULT_NONE);
    assert_false(reply.is_replayed);
    assert_int_equal(run(call), FAULT_NONE);
    assert_true(reply.is_replayed);
    call.account = BYTES("12345678901234567");
    assert_int_equal(run(call), FAULT_ALIMIT);
    assert_string_equal(reply.arguments[0], "limit_name_bytes");
}

static void synchronisations_are_computed_anew(void **state UNUSED)
{
    struct call call = call_of("put", put_of("a", "1"), "k");
    assert_int_equal(run(call), FAULT_NONE);
    int64_t version = fake_version("Doc", "a");
    assert_int_equal(put("a", "22", NULL), FAULT_NONE);
    call.syncs = parse("[{\"c\":\"Doc\",\"id\":\"a\"}]");
    assert_int_equal(run(call), FAULT_NONE);
    assert_true(reply.is_replayed);
    const char *out = arena_printf(arena, "{\"out\":{\"v\":%lld,\"docs\":[", (long long)version);
    assert_int_equal(strncmp(body.data, out, strlen(out)), 0);
    assert_non_null(strstr(body.data, "\"j\":22"));
}

static void who_only_reads_keeps_nothing(void **state UNUSED)
{
    static const char get[] = "{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\"}]}";
    assert_int_equal(run(call_of("get", get, "k")), FAULT_NONE);
    assert_int_equal(run(call_of("get", get, "k")), FAULT_NONE);
    assert_false(reply.is_replayed);
    assert_int_equal(run(call_of("sync", NULL, "k")), FAULT_NONE);
    assert_int_equal(fake.finds + fake.commits, 0);
}

static void keys_are_checked(void **state UNUSED)
{
    char text[300];
    memset(text, 'k', sizeof text);
    text[256] = '\0';
    static const char *const wrong[] = {"", "two words", "caf\xc3\xa9", "tab\t", "\x7f"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(put("a", "1", wrong[i]), FAULT_AARG);
        assert_string_equal(reply.arguments[0], "Idempotency-Key");
    }
    assert_int_equal(put("a", "1", text), FAULT_AARG);
    assert_int_equal(run(call_of("sync", NULL, text)), FAULT_AARG);
    assert_int_equal(fake.commits, 0);
    text[255] = '\0';
    assert_int_equal(put("a", "1", text), FAULT_NONE);
    assert_int_equal(put("a", "1", "\"!~\""), FAULT_NONE);
}

static const char *key_made_at(int64_t seconds, char version, char variant)
{
    int64_t ms = stamp_to_epoch_ms(stamp_add_ms(stamp_now(), seconds * 1000));
    return arena_printf(arena, "%08llX-%04llx-%cabc-%cdef-0123456789aB", (long long)(ms >> 16),
                        (long long)(ms & 0xffff), version, variant);
}

/* idempotency_check_age compares the time of the key. */
static void keys_may_carry_their_time(void **state UNUSED)
{
    assert_int_equal(put("a", "1", key_made_at(-101, '7', '8')), FAULT_AKEYOLD);
    assert_int_equal(reply.phase, PHASE_BEFORE);
    assert_int_equal(reply.argument_count, 3);
    assert_true(atoll(reply.arguments[0]) < atoll(reply.arguments[1]));
    assert_true(atoll(reply.arguments[1]) < atoll(reply.arguments[2]));
    assert_true(atoll(reply.arguments[2]) <= stamp_now());
    assert_int_equal(put("a", "1", key_made_at(-96, '7', 'b')), FAULT_AKEYOLD); /* the tolerance of clocks */
    int64_t before = stamp_now();
    assert_int_equal(put("a", "1", key_made_at(60, '7', 'B')), FAULT_AKEYAHEAD);
    assert_int_equal(reply.argument_count, 3);
    assert_true(atoll(reply.arguments[2]) >= before && atoll(reply.arguments[2]) <= stamp_now());
    assert_int_equal(fake.commits, 0);
    /* others have no time */
    assert_int_equal(put("a", "1", key_made_at(-101, '4', '8')), FAULT_NONE);
    assert_int_equal(put("a", "1", key_made_at(-101, '7', 'c')), FAULT_NONE);
    assert_int_equal(put("a", "1", arena_printf(arena, "%s0", key_made_at(-101, '7', '8'))), FAULT_NONE);
    assert_int_equal(put("a", "1", "0123456789abcdef-0123-7123-8123-0123"), FAULT_NONE);
    /* in time; and the answer is given as long as it is there */
    const char *key = key_made_at(-90, '7', '9');
    assert_int_equal(put("a", "2", key), FAULT_NONE);
    int commits = fake.commits;
    assert_int_equal(put("a", "2", key), FAULT_NONE);
    assert_true(reply.is_replayed);
    struct idempotency old = *fake_kept(key);
    key = key_made_at(-500, '7', '8');
    old.key = bytes_of(key);
    fake_keep(&old);
    assert_int_equal(put("a", "2", key), FAULT_NONE);
    assert_true(reply.is_replayed);
    assert_int_equal(fake.commits, commits);
}

static void the_stamp_of_the_operation_is_the_time_of_other_keys(void **state UNUSED)
{
    struct call call = call_of("put", put_of("a", "1"), "k");
    char old[STAMP_DIGITS + 1];
    stamp_to_text(stamp_add_ms(stamp_now(), -101 * 1000), old);
    call.dhop = bytes_of(old);
    assert_int_equal(run(call), FAULT_AKEYOLD);
    call.idempotency_key = bytes_of(key_made_at(0, '7', '8'));
    assert_int_equal(run(call), FAULT_NONE);
    assert_int_equal(fake.commits, 1);
}

static void faults_are_not_kept(void **state UNUSED)
{
    static const char born[] = "{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"if\":0}]}";
    fake_change("Doc", "a", 200, "1");
    assert_int_equal(run(call_of("put", born, "k")), FAULT_AVERSION);
    assert_int_equal(run(call_of("put", "{}", "k")), FAULT_AARG);
    assert_null(fake_kept("k"));
    fake_change("Doc", "a", 300, NULL);
    slots_move_all(segment);
    assert_int_equal(run(call_of("put", born, "k")), FAULT_NONE);
    assert_int_equal(run(call_of("put", born, "k")), FAULT_NONE);
    assert_true(reply.is_replayed);
    fake.find_fault = FAULT_XAWAY;
    int commits = fake.commits;
    assert_int_equal(run(call_of("put", born, "k")), FAULT_XAWAY);
    assert_int_equal(fake.commits, commits);
}

static void an_answer_has_a_limit(void **state UNUSED)
{
    settings.limit_kept_bytes = 5;
    assert_int_equal(put("a", "1", "k"), FAULT_ALIMIT);
    assert_string_equal(reply.arguments[0], "limit_kept_bytes");
    assert_string_equal(reply.arguments[1], "5");
    assert_int_equal(fake.commits, 0);
    assert_int_equal(put("a", "1", NULL), FAULT_NONE);
}

/* --- twins --- */

/* The twin's commit of put_of("a", "1") under the key "k". */
static void twin_commits(void)
{
    struct builder own = body;
    struct reply own_reply = reply;
    fake.after_find = fake.before_commit = NULL;
    body = (struct builder){0};
    assert_int_equal(put("a", "1", "k"), FAULT_NONE);
    assert_false(reply.is_replayed);
    builder_free(&body);
    body = own;
    reply = own_reply;
}

static void a_quicker_twin_gives_the_answer(void **state UNUSED)
{
    fake.after_find = twin_commits; /* this one looked too early */
    assert_int_equal(put("a", "1", "k"), FAULT_NONE);
    assert_true(reply.is_replayed);
    assert_string_equal(answer(), answer_of("a", fake_version("Doc", "a")));
    assert_int_equal(fake.commits, 2);
}

static void born_by_twin(void)
{
    static const char born[] = "{\"docs\":[{\"c\":\"Doc\",\"id\":\"b\",\"if\":0}]}";
    struct builder own = body;
    struct reply own_reply = reply;
    fake.after_find = NULL;
    body = (struct builder){0};
    assert_int_equal(run(call_of("put", born, "b")), FAULT_NONE);
    builder_free(&body);
    body = own;
    reply = own_reply;
}

static void a_quicker_twin_makes_a_fault_an_answer(void **state UNUSED)
{
    static const char born[] = "{\"docs\":[{\"c\":\"Doc\",\"id\":\"b\",\"if\":0}]}";
    fake.after_find = born_by_twin;
    assert_int_equal(run(call_of("put", born, "b")), FAULT_NONE);
    assert_true(reply.is_replayed);
    assert_string_equal(answer(), answer_of("b", fake_version("Doc", "b")));
    assert_int_equal(fake.commits, 1);
}

static void a_twin_with_another_request_is_refused(void **state UNUSED)
{
    fake.after_find = twin_commits;
    assert_int_equal(put("c", "3", "k"), FAULT_AKEYREUSED);
    assert_int_equal(fake_version("Doc", "c"), 0);
}

/* --- outcomes unknown --- */

static void heal(void)
{
    fake.outcome = COMMIT_DONE;
    fake.after_find = NULL;
}

static void a_lost_commit_that_happened_gives_its_answer(void **state UNUSED)
{
    fake.outcome = COMMIT_UNKNOWN;
    fake.is_lost = true;
    assert_int_equal(put("a", "1", "k"), FAULT_NONE);
    assert_int_equal(fake.commits, 1);
    assert_string_equal(answer(), answer_of("a", fake_version("Doc", "a")));
    heal();
    assert_int_equal(put("a", "1", "k"), FAULT_NONE);
    assert_int_equal(fake.commits, 1);
}

static int finds_left;

static void heal_later(void)
{
    if (finds_left-- == 0)
        heal();
}

static void a_lost_commit_that_did_not_happen_is_made_again(void **state UNUSED)
{
    fake.outcome = COMMIT_UNKNOWN;
    fake.after_find = heal_later; /* the first look is before the first try */
    finds_left = 1;
    assert_int_equal(put("a", "1", "k"), FAULT_NONE);
    assert_int_equal(fake.commits, 2);
    assert_false(reply.is_replayed);
    /* tries are bounded; nothing was committed, and that is said */
    fake.outcome = COMMIT_UNKNOWN;
    assert_int_equal(put("b", "1", "l"), FAULT_XAWAY);
    assert_int_equal(fake.commits, 5);
    assert_int_equal(reply.phase, PHASE_VALIDATION);
    /* without a key it is as unknown as ever */
    assert_int_equal(put("b", "1", NULL), FAULT_XUNKNOWN);
    assert_int_equal(fake.commits, 6);
    assert_int_equal(reply.phase, PHASE_UNKNOWN);
}

static void fail_to_find(void)
{
    fake.find_fault = FAULT_XAWAY;
}

static void what_cannot_be_proven_stays_unknown(void **state UNUSED)
{
    fake.outcome = COMMIT_UNKNOWN;
    fake.before_commit = fail_to_find;
    assert_int_equal(put("a", "1", "k"), FAULT_XUNKNOWN);
    assert_int_equal(fake.commits, 1);
    fake.find_fault = FAULT_NONE;
    fake.before_commit = NULL;
    fake.reconnect_fault = FAULT_XAWAY; /* the old backend may still be there */
    int finds = fake.finds;
    assert_int_equal(put("a", "1", "k"), FAULT_XUNKNOWN);
    assert_int_equal(fake.finds, finds + 1);
    assert_true(documents_must_exit(worker_context.documents));
}

/* --- the stamp of the session --- */

static enum fault run_at(int64_t dhop)
{
    struct call call = call_of("sync", NULL, NULL);
    char text[STAMP_DIGITS + 1];
    stamp_to_text(dhop, text);
    call.dhop = bytes_of(text);
    return run(call);
}

static void a_stamp_is_neither_in_the_future_nor_too_old(void **state UNUSED)
{
    int64_t now = stamp_now();
    assert_int_equal(run_at(now), FAULT_NONE);
    assert_int_equal(run_at(stamp_add_ms(now, 4000)), FAULT_NONE);
    assert_int_equal(run_at(stamp_add_ms(now, -3590 * 1000)), FAULT_NONE);
    assert_int_equal(run_at(stamp_add_ms(now, 600 * 1000)), FAULT_ADHOP);
    assert_int_equal(reply.argument_count, 4);
    assert_true(atoll(reply.arguments[0]) == stamp_add_ms(now, 600 * 1000));
    assert_true(atoll(reply.arguments[3]) >= now && atoll(reply.arguments[3]) <= stamp_now());
    assert_true(atoll(reply.arguments[1]) < now && atoll(reply.arguments[2]) > now);
    assert_int_equal(run_at(stamp_add_ms(now, -3601 * 1000)), FAULT_ADHOP);
    static const char *const wrong[] = {"", "0", "soon", "261321000000000", "2611210000000001"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct call call = call_of("sync", NULL, NULL);
        call.dhop = bytes_of(wrong[i]);
        assert_int_equal(run(call), FAULT_AARG);
        assert_string_equal(reply.arguments[0], "dhop");
        assert_int_equal(reply.phase, PHASE_BEFORE);
    }
}

static void operations_get_the_stamp(void **state UNUSED)
{
    char text[STAMP_DIGITS + 1];
    int64_t now = stamp_now();
    stamp_to_text(now, text);
    struct call call = call_of("sync", NULL, NULL);
    call.dhop = bytes_of(text);
    reply = (struct reply){.body = &body};
    run_in_world(&call);
    assert_true(call.dhop_stamp == now);
    call.dhop = NO_BYTES;
    run_in_world(&call);
    assert_true(call.dhop_stamp == 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, worker_context_world_close)
    const struct CMUnitTest tests[] = {
        TEST(a_request_sent_again_gets_its_answer_again),
        TEST(without_a_key_nothing_is_looked_for),
        TEST(what_changes_nothing_is_kept_too),
        TEST(another_request_is_refused),
        TEST(each_account_has_its_own_keys),
        TEST(synchronisations_are_computed_anew),
        TEST(who_only_reads_keeps_nothing),
        TEST(keys_are_checked),
        TEST(keys_may_carry_their_time),
        TEST(the_stamp_of_the_operation_is_the_time_of_other_keys),
        TEST(faults_are_not_kept),
        TEST(an_answer_has_a_limit),
        TEST(a_quicker_twin_gives_the_answer),
        TEST(a_quicker_twin_makes_a_fault_an_answer),
        TEST(a_twin_with_another_request_is_refused),
        TEST(a_lost_commit_that_happened_gives_its_answer),
        TEST(a_lost_commit_that_did_not_happen_is_made_again),
        TEST(what_cannot_be_proven_stays_unknown),
        TEST(a_stamp_is_neither_in_the_future_nor_too_old),
        TEST(operations_get_the_stamp),
    };
    return cmocka_run_group_tests_name("once", tests, NULL, NULL);
}
