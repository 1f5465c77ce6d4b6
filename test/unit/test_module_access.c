/* module: who the caller is and what it may do, as far as this needs no account; rates; digests and secrets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_store.h"
#include "module_world.h"

/* --- digests and secrets --- */

static enum stampd_outcome digest_and_draw(struct stampd_call *call)
{
    unsigned char digest[STAMPD_SHA256_BYTES], again[STAMPD_SHA256_BYTES];
    struct stampd_bytes bytes = {(const char *)digest, sizeof digest};
    stampd_sha256(stampd_bytes("abc", 3), digest); /* FIPS 180-2 */
    assert_string_equal(stampd_hex(call, bytes),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    stampd_sha256(stampd_bytes(NULL, 0), digest);
    assert_string_equal(stampd_hex(call, bytes),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    stampd_hmac_sha256(stampd_bytes("Jefe", 4), stampd_bytes("what do ya want for nothing?", 28), digest);
    assert_string_equal(stampd_hex(call, bytes), /* RFC 4231 */
                        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    assert_string_equal(stampd_hex(call, stampd_bytes(NULL, 0)), "");
    assert_string_equal(stampd_base64url(call, stampd_bytes("\xfb\xff\x00", 3)), "-_8A");
    assert_string_equal(stampd_base64url(call, stampd_bytes(NULL, 0)), "");

    assert_true(stampd_equal_secrets(stampd_bytes("a", 1), stampd_bytes("a", 1)));
    assert_true(stampd_equal_secrets(stampd_bytes(NULL, 0), stampd_bytes("", 0)));
    assert_false(stampd_equal_secrets(stampd_bytes("a", 1), stampd_bytes("b", 1)));
    assert_false(stampd_equal_secrets(stampd_bytes("a", 1), stampd_bytes("ab", 2)));
    assert_false(stampd_equal_secrets(stampd_bytes("a", 1), stampd_bytes(NULL, 0)));

    stampd_random(digest, sizeof digest);
    stampd_random(again, sizeof again);
    assert_memory_not_equal(digest, again, sizeof digest);
    const char *token = stampd_random_token(call);
    assert_int_equal(strlen(token), 43);
    assert_int_equal(strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), 43);
    assert_string_not_equal(token, stampd_random_token(call));
    return STAMPD_DONE;
}

static void digests_and_secrets(void **state UNUSED)
{
    assert_int_equal(run(digest_and_draw, NULL), FAULT_NONE);
    assert_int_equal(works, 1);
}

/* --- the caller --- */

static bool may_read, may_change;

static enum stampd_outcome judge(struct stampd_call *call)
{
    struct stampd_document *there = stampd_fetch(call, "Firm", "a"), *none = stampd_fetch(call, "Firm", "b");
    assert_null(stampd_caller(call));
    assert_int_equal(stampd_role_count(call), 0);
    assert_null(stampd_role(call, 0));
    assert_false(stampd_has_role(call, "editor"));
    may_read = stampd_may_read(there);
    assert_true(stampd_may_change(there) && stampd_may_change(none)); /* unchanged */
    assert_int_equal(stampd_may_list(there), may_read);
    assert_int_equal(stampd_may_see(there, "Sta"), may_read);
    stampd_create(none);
    assert_false(stampd_may_read(none) || stampd_may_list(none) || stampd_may_see(none, "Sta"));
    stampd_delete(there);
    assert_int_equal(stampd_may_read(there), may_read); /* as it was loaded */
    may_change = stampd_may_change(there);
    assert_int_equal(stampd_may_change(none), may_change);
    return stampd_raise(call, "ADONE", NULL, NULL); /* nothing is written */
}

static void without_rules_the_access_decides(void **state UNUSED)
{
    static const struct {
        const char *conf;
        bool may_read, may_change;
    } cases[] = {{"{\"access\":\"closed\"}", false, false},
                 {"{\"access\":\"read\"}", true, false},
                 {"{\"access\":\"open\"}", true, true},
                 {"{\"access\":\"rules\"}", false, false}}; /* there are none: nothing is allowed */
    fake_change("Firm", "a", 261121103000123, "1");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        configure(cases[i].conf);
        assert_int_equal(run(judge, NULL), FAULT_RAISED);
        assert_int_equal(may_read, cases[i].may_read);
        assert_int_equal(may_change, cases[i].may_change);
        assert_int_equal(run_call("Trial", NULL, (struct call){.admin = BYTES("open sesame")}), FAULT_RAISED);
        assert_true(may_read && may_change);
    }
}

static enum stampd_outcome judge_after_failure(struct stampd_call *call)
{
    struct stampd_document *document = stampd_fetch(call, "no class", "a");
    assert_true(stampd_failed(call));
    assert_false(stampd_may_read(document) || stampd_may_list(document) || stampd_may_see(document, "Sta") ||
                 stampd_may_change(document));
    assert_false(stampd_limit(call, "n", "s", "1/d"));
    return STAMPD_DONE;
}

static void after_a_failure_nothing_is_allowed(void **state UNUSED)
{
    configure("{\"access\":\"open\"}");
    assert_int_equal(run(judge_after_failure, NULL), FAULT_BMODULE);
}

/* --- after the commit --- */

static enum stampd_outcome change_firm(struct stampd_call *call)
{
    stampd_set_json(stampd_fetch(call, "Firm", "a"), "Sta", NULL, stampd_bytes("2", 1));
    return STAMPD_DONE;
}

static void lose_schema(void)
{
    fake.schema = "{";
}

/* Which matches the caller may know of is judged after the commit. */
static void a_fault_after_the_commit_does_not_deny_it(void **state UNUSED)
{
    struct matched_definition matched[] = {{.text = BYTES("Firm/size@1"), .version = 261121103000124}};
    fake.match = (struct match){.is_known = true, .has_own = true, .definitions = matched, .count = 1};
    fake_change("Firm", "a", 261121103000123, "1");
    configure("{\"access\":\"rules\"}");
    fake.before_commit = lose_schema;
    work = change_firm;
    assert_int_not_equal(run_call("Grant", NULL, (struct call){.session = BYTES("session-of-a-client")}),
                         FAULT_NONE);
    assert_int_equal(fake.commits, 1);
    assert_true(fake_version("Firm", "a") > 261121103000123);
    assert_int_equal(reply.phase, PHASE_SYNC);
}

/* --- rates --- */

static const char *name, *subject, *rate;

static enum stampd_outcome take_one(struct stampd_call *call)
{
    return stampd_limit(call, name, subject, rate) ? STAMPD_DONE : STAMPD_FAULT;
}

static void expect_admitted(const char *of_name, const char *of_subject, int admitted)
{
    name = of_name;
    subject = of_subject;
    rate = "9/d, burst 3";
    for (int i = 0; i < admitted; i++)
        assert_int_equal(run(take_one, NULL), FAULT_NONE);
    assert_int_equal(run(take_one, NULL), FAULT_XBUSY);
    expect_fault(FAULT_XBUSY, of_name);
    assert_string_equal(reply.arguments[1], rate);
    assert_in_range(reply.retry_after_s, 1, 9600);
    assert_int_equal(works, 1); /* it is not tried again */
}

static void each_subject_has_its_rate(void **state UNUSED)
{
    expect_admitted("invite", "ann", 3);
    expect_admitted("invite", "bob", 3);
    expect_admitted("invite", "", 3);
    expect_admitted("mail", "ann", 3);
    expect_admitted("invite ann", "x", 3);
    expect_admitted("invite", "ann x", 3);
    expect_admitted("invite", "ann", 0);
}

static void a_rate_is_well_formed(void **state UNUSED)
{
    static const char *const wrong[] = {"", "5", "0/s", "5/w", "5/s, burst", "5/s "};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        rate = wrong[i];
        assert_int_equal(run(take_one, NULL), FAULT_BMODULE);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start_world, worker_context_world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(digests_and_secrets),
        TEST(without_rules_the_access_decides),
        TEST(a_fault_after_the_commit_does_not_deny_it),
        TEST(after_a_failure_nothing_is_allowed),
        TEST(each_subject_has_its_rate),
        TEST(a_rate_is_well_formed),
    };
    return cmocka_run_group_tests_name("module access", tests, open_world, NULL);
}
