/* copies: what is declared, what a commit notes and asks for, and the freshness of what copies are written
 * to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_tasks.h"
#include "segment/slots.h"
#include "store/documents/store_commit.h"
#include "document/transaction.h"
#include "transaction_world.h"

#define DECLARATION                                                                                          \
    "{\"classes\":{\"Doc\":{\"items\":{\"Sta\":{\"singleton\":true,\"copies\":{\"to\":[\"Team\"]}},"         \
    "\"Emp\":{\"copies\":{\"to\":[\"Team\",\"Board\"],\"separator\":\"@@\"}},\"Own\":{}}},"                  \
    "\"Team\":{\"items\":{\"Sta\":{},\"Emp\":{}}},\"Board\":{\"open\":true,\"items\":{}}}}"

static int start(void **state)
{
    static char none[] = "";
    int failed = world_start(state);
    settings.task_queues = none;
    return failed;
}

static struct schema *declared(const char *text)
{
    struct schema *schema;
    struct schema_problem problem;
    assert_int_equal(schema_read(arena, bytes_of(text), &schema, &problem), FAULT_NONE);
    return schema;
}

/* --- declarations --- */

static void a_schema_says_what_is_copied_and_under_which_key(void **state UNUSED)
{
    const struct schema *schema = declared(DECLARATION);
    assert_true(copies_exist(schema));
    assert_false(copies_exist(declared("{\"classes\":{\"Doc\":{\"items\":{\"Sta\":{}}}}}")));
    assert_null(copies_find(schema, BYTES("Doc"), BYTES("Own")));
    assert_null(copies_find(schema, BYTES("Team"), BYTES("Emp")));
    assert_null(copies_find(schema, BYTES("None"), BYTES("Sta")));
    const struct schema_copies *sta = copies_find(schema, BYTES("Doc"), BYTES("Sta"));
    const struct schema_copies *emp = copies_find(schema, BYTES("Doc"), BYTES("Emp"));
    assert_int_equal(sta->count, 1);
    assert_int_equal(emp->count, 2);
    assert_true(bytes_equal(copies_key(arena, sta, BYTES(""), BYTES("a")), BYTES("a")));
    assert_true(bytes_equal(copies_key(arena, sta, NO_BYTES, BYTES("a")), BYTES("a")));
    assert_true(bytes_equal(copies_key(arena, emp, BYTES("7"), BYTES("a")), BYTES("7@@a")));
    struct builder text = {0};
    schema_write(schema, &text);
    assert_true(bytes_equal(builder_bytes(&text),
                            BYTES("{\"classes\":{\"Board\":{\"open\":true,\"items\":{}},\"Doc\":{\"items\":{"
                                  "\"Emp\":{\"copies\":{\"to\":[\"Team\",\"Board\"],\"separator\":\"@@\"}},"
                                  "\"Own\":{},\"Sta\":{\"singleton\":true,\"copies\":{\"to\":[\"Team\"]}}}},"
                                  "\"Team\":{\"items\":{\"Emp\":{},\"Sta\":{}}}}}")));
    builder_free(&text);
}

static void what_cannot_be_copied_is_refused_with_its_place(void **state UNUSED)
{
    static const struct {
        const char *copies, *target, *path, *words;
    } wrong[] = {
        {"[]", "{}", "copies", "An object with to and separator"},
        {"{}", "{}", "copies", "The member to is expected"},
        {"{\"to\":[]}", "{}", "copies", "1 to 16"},
        {"{\"to\":[1]}", "{}", "copies.to[0]", "name of a class"},
        {"{\"to\":[\"t\"]}", "{}", "copies.to[0]", "name of a class"},
        {"{\"to\":[\"T\",\"T\"]}", "{}", "copies.to[1]", "once"},
        {"{\"to\":[\"T\"],\"from\":1}", "{}", "copies.from", "The members here are to and separator"},
        {"{\"to\":[\"T\"],\"separator\":\"\"}", "{}", "copies.separator", "1 to 8 bytes"},
        {"{\"to\":[\"T\"],\"separator\":\"123456789\"}", "{}", "copies.separator", "1 to 8 bytes"},
        {"{\"to\":[\"T\"],\"separator\":7}", "{}", "copies.separator", "1 to 8 bytes"},
        {"{\"to\":[\"None\"]}", "{}", "copies.to[0]", "declared here"},
        {"{\"to\":[\"T\"]}", "{\"items\":{}}", "copies.to[0]", "have no items of this class"},
        {"{\"to\":[\"T\"]}", "{\"items\":{\"I\":{\"singleton\":true}}}", "copies.to[0]", "a copy has a key"},
        {"{\"to\":[\"T\"]}", "{\"items\":{\"I\":{\"raw\":true}}}", "copies.to[0]", "other kind"},
        {"{\"to\":[\"T\"]}", "{\"items\":{\"I\":{\"copies\":{\"to\":[\"O\"]}}}}", "copies.to[0]",
         "not copied further"},
        {"{\"to\":[\"S\"]}", "{\"items\":{}}", "copies.to[0]", "not copied further"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct schema *schema;
        struct schema_problem problem;
        const char *text = arena_printf(
            arena,
            "{\"classes\":{\"S\":{\"items\":{\"I\":{\"copies\":%s}}},\"T\":%s,"
            "\"O\":{\"open\":true,\"items\":{}}}}",
            wrong[i].copies, strcmp(wrong[i].target, "{}") ? wrong[i].target : "{\"items\":{\"I\":{}}}");
        assert_int_equal(schema_read(arena, bytes_of(text), &schema, &problem), FAULT_AARG);
        assert_string_equal(problem.path, arena_printf(arena, "classes.S.items.I.%s", wrong[i].path));
        assert_non_null(strstr(problem.expected, wrong[i].words));
    }
}

/* --- what a commit notes --- */

static void set(struct draft *draft, const char *iclass, const char *key, const char *content)
{
    draft_set_item(draft, bytes_of(iclass), bytes_of(key), false, bytes_of(content));
}

/* Writes them into document A. */
static void write_items(const char *const (*items)[3], size_t count, bool is_renewed)
{
    int64_t version;
    struct transaction *transaction = begin(false);
    struct draft *draft = fetch(transaction, A);
    if (is_renewed)
        draft_delete(draft);
    for (size_t i = 0; i < count; i++) {
        if (items[i][2])
            set(draft, items[i][0], items[i][1], items[i][2]);
        else
            draft_remove_item(draft, bytes_of(items[i][0]), bytes_of(items[i][1]));
    }
    fake.note_count = 0;
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    assert_true(version > 0);
}

static void noted(const char *const *expected, size_t count)
{
    assert_int_equal(fake.note_count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(fake.notes[i].text, expected[i]);
}

static void a_commit_notes_what_is_copied_and_makes_one_task(void **state UNUSED)
{
    fake.schema = DECLARATION;
    write_items(
        (const char *const[][3]){{"Sta", "", "1"}, {"Emp", "7", "1"}, {"Emp", "8", "1"}, {"Own", "x", "1"}},
        4, false);
    noted((const char *const[]){"Doc.a Emp.7", "Doc.a Emp.8", "Doc.a Sta."}, 3);
    assert_int_equal(queue.count, 1);
    const struct task *task = &queue.tasks[0].task;
    assert_string_equal(task->operation.data, "copy");
    assert_string_equal(task->param.data, "{\"c\":\"Doc\",\"id\":\"a\"}");
    assert_string_equal(task->resource.data, "Doc.a");
    /* what stays as it is is not due, nor what is not copied */
    write_items((const char *const[][3]){{"Emp", "7", "1"}, {"Emp", "8", NULL}, {"Own", "x", "2"}}, 3, false);
    noted((const char *const[]){"Doc.a Emp.8"}, 1);
    assert_int_equal(queue.count, 2); /* the database joins it with the one that waits */
    write_items((const char *const[][3]){{"Own", "x", "3"}}, 1, false);
    noted(NULL, 0);
    assert_int_equal(queue.count, 2);
}

static void what_goes_with_a_life_is_due_once(void **state UNUSED)
{
    fake.schema = DECLARATION;
    write_items(
        (const char *const[][3]){{"Sta", "", "1"}, {"Emp", "7", "1"}, {"Emp", "8", "1"}, {"Own", "x", "1"}},
        4, false);
    write_items((const char *const[][3]){{"Emp", "7", "2"}, {"Emp", "9", "2"}, {"Own", "x", "2"}}, 3, true);
    noted((const char *const[]){"Doc.a Emp.7", "Doc.a Emp.9", "Doc.a Emp.8", "Doc.a Sta."}, 4);
    write_items(NULL, 0, true);
    noted((const char *const[]){"Doc.a Emp.7", "Doc.a Emp.9"}, 2);
}

/* --- what copies are written to --- */

static void documents_that_copies_are_written_to_are_as_fresh_as_others(void **state UNUSED)
{
    int64_t version;
    struct copy_source source = {.iclass = BYTES("Emp"), .key = BYTES("7")};
    struct copy_target targets[] = {{BYTES("Doc"), BYTES("a"), 0}, {BYTES("Doc"), BYTES("b"), 0}};
    const struct copy_batch batch = {BYTES("Firm"), BYTES("f"), 0, &source, 1, targets, 2};
    fake_change("Doc", "a", 100, "1");
    fake_change("Doc", "b", 100, "1");
    assert_int_equal(newest_version(A), 100);
    assert_int_equal(newest_version(B), 100);
    uint64_t before = slots_see(segment, slot_of(A)).stamp;
    struct transaction *transaction = begin(false);
    transaction_copy(transaction, &batch);
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    assert_int_equal(version, 0);
    assert_int_equal(fake.copy_count, 2);
    fake_change("Doc", "a", 200, "2"); /* what the commit has done */
    fake_change("Doc", "b", 200, "2");
    assert_int_equal(slots_see(segment, slot_of(A)).stamp, before + 1);
    assert_false(slots_see(segment, slot_of(B)).busy);
    assert_int_equal(newest_version(A), 200);
    assert_int_equal(newest_version(B), 200);
}

static struct observation seen_during;

static void look_at_b(void)
{
    seen_during = slots_see(segment, slot_of(B));
}

static void while_copies_are_written_nobody_believes_in_the_old_ones(void **state UNUSED)
{
    int64_t version;
    struct copy_source source = {.iclass = BYTES("Emp"), .key = BYTES("7")};
    struct copy_target target = {BYTES("Doc"), BYTES("b"), 0};
    const struct copy_batch batch = {BYTES("Firm"), BYTES("f"), 0, &source, 1, &target, 1};
    struct transaction *transaction = begin(false);
    transaction_copy(transaction, &batch);
    fake.before_commit = look_at_b;
    fake.outcome = COMMIT_REFUSED;
    fake.outcome_fault = FAULT_STALE;
    assert_int_equal(validate(transaction, &version), FAULT_STALE);
    assert_true(seen_during.busy);
    assert_false(slots_see(segment, slot_of(B)).busy);
    assert_int_equal(slots_see(segment, slot_of(B)).stamp, seen_during.stamp);
}

/* --- batches --- */

static void a_batch_is_in_the_order_of_documents(void **state UNUSED)
{
    struct copy_target targets[] = {{BYTES("T"), BYTES("b"), 0},
                                    {BYTES("T"), BYTES("c"), 0},
                                    {BYTES("S"), BYTES("z"), 1},
                                    {BYTES("T"), BYTES("b"), 1}};
    struct copy_batch batch = {.targets = targets, .target_count = COUNT_OF(targets)};
    copies_sort(&batch);
    static const char *const ids[] = {"z", "b", "b", "c"};
    static const bool firsts[] = {true, true, false, true};
    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        assert_string_equal(targets[i].id.data, ids[i]);
        assert_int_equal(copies_is_first(&batch, i), firsts[i]);
    }
    assert_int_equal(targets[1].source, 0);
    assert_int_equal(targets[2].source, 1);
}

static void a_place_survives_as_a_text(void **state UNUSED)
{
    const struct copy_position place = {BYTES("Sta"), BYTES(""), INT64_C(261121010101001), BYTES("T"),
                                        BYTES("a\"b")};
    const struct copy_position read = copies_read_position(arena, copies_write_position(arena, &place));
    assert_true(bytes_equal(read.iclass, place.iclass) && bytes_equal(read.key, place.key));
    assert_true(bytes_equal(read.class, place.class) && bytes_equal(read.id, place.id));
    assert_int_equal(read.due, place.due);
    static const char *const wrong[] = {
        "{}", "[]", "7", "{\"i\":\"Sta\",\"k\":\"\",\"due\":\"1\",\"c\":\"T\",\"id\":\"a\"}", "{"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_null(copies_read_position(arena, bytes_of(wrong[i])).class.data);
    assert_null(copies_read_position(arena, NO_BYTES).class.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_schema_says_what_is_copied_and_under_which_key, start, world_stop),
        cmocka_unit_test_setup_teardown(what_cannot_be_copied_is_refused_with_its_place, start, world_stop),
        cmocka_unit_test_setup_teardown(a_commit_notes_what_is_copied_and_makes_one_task, start, world_stop),
        cmocka_unit_test_setup_teardown(what_goes_with_a_life_is_due_once, start, world_stop),
        cmocka_unit_test_setup_teardown(documents_that_copies_are_written_to_are_as_fresh_as_others, start,
                                        world_stop),
        cmocka_unit_test_setup_teardown(while_copies_are_written_nobody_believes_in_the_old_ones, start,
                                        world_stop),
        cmocka_unit_test_setup_teardown(a_batch_is_in_the_order_of_documents, start, world_stop),
        cmocka_unit_test_setup_teardown(a_place_survives_as_a_text, start, world_stop),
    };
    return cmocka_run_group_tests_name("copies", tests, NULL, NULL);
}
