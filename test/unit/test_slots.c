/* test_slots: slots, marks, names and entries of the segment, processes that die at chosen points, and the
 * protocol of freshness.md against a database that is an array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash.h"
#include "child.h"
#include "segment/namespaces.h"
#include "segment/processes.h"
#include "segment/slots.h"
#include "segment/segment_open.h"
#include "edge/mapping.h"

enum { SLOTS = 1024 };

static struct segment *segment, *other; /* two handles of one segment, as of two processes */

static struct segment *open_segment(uint32_t slots)
{
    struct segment *handle;
    char problem[256];
    assert_true(segment_open(&handle, folder_path("segment"), slots, 0, problem, sizeof problem));
    return handle;
}

static int open_two(void **state UNUSED)
{
    folder_make();
    segment = open_segment(SLOTS);
    other = open_segment(SLOTS);
    return 0;
}

static int close_two(void **state UNUSED)
{
    segment_close(segment);
    segment_close(other);
    folder_remove();
    return 0;
}

/* Takes entries up to that index and becomes it. */
static void become(struct segment *handle, int index)
{
    int indexes[PROCESSES_MOST];
    while (processes_instance(handle, index) == 0)
        assert_int_equal(processes_take(handle, 1, 1, 1, indexes), 1);
    segment_join(handle, index);
}

static void a_commit_is_seen_in_its_order(void **state UNUSED)
{
    uint32_t slots[] = {7, 1000};
    uint64_t own[2], moved[2];
    become(segment, 0);
    become(other, 1);
    slots_begin(segment, 3);
    assert_int_equal(processes_namespace(other, 0), 3);
    assert_false(slots_see(other, 7).busy);
    slots_mark(segment, slots, 2, own);
    assert_true(slots_see(other, 7).busy && slots_see(other, 1000).busy);
    assert_false(slots_see(other, 8).busy);
    slots_publish(other, slots, 1, NULL); /* somebody else's commit in slot 7 meanwhile */
    slots_publish(segment, slots, 2, moved);
    assert_true(moved[0] != own[0]); /* so the written copy gets no tag */
    assert_true(moved[1] == own[1]);
    assert_int_equal(slots_see(other, 1000).stamp, moved[1] + 1);
    assert_true(slots_see(other, 7).busy);
    slots_unmark(segment, slots, 2);
    assert_false(slots_see(other, 7).busy);
    assert_int_equal(slots_see(other, 7).stamp, 2);
    slots_end(segment);
    assert_int_equal(processes_namespace(other, 0), -1);
}

static void every_word_of_marks_counts(void **state UNUSED)
{
    uint32_t slot = 5;
    uint64_t own;
    for (int index = 0; index < PROCESSES_MOST; index += 63) { /* each word, first, last and middle bits */
        become(segment, index);
        slots_begin(segment, 0);
        assert_false(slots_see(other, slot).busy);
        slots_mark(segment, &slot, 1, &own);
        assert_true(slots_see(other, slot).busy);
        slots_unmark(segment, &slot, 1);
        slots_end(segment);
    }
}

static void all_stamps_move(void **state UNUSED)
{
    slots_move_all(segment);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        assert_int_equal(slots_see(other, slot).stamp, 1);
}

static void a_name_has_one_hash_for_all(void **state UNUSED)
{
    char text[4000];
    memset(text, 'x', sizeof text);
    struct bytes long_id = {text, sizeof text};
    uint64_t hash = slots_hash(segment, 1, BYTES("Class"), BYTES("id"));
    assert_true(hash == slots_hash(other, 1, BYTES("Class"), BYTES("id")));
    assert_true(hash != slots_hash(segment, 2, BYTES("Class"), BYTES("id")));
    assert_true(hash != slots_hash(segment, 1, BYTES("Classi"), BYTES("d")));
    assert_true(hash != slots_hash(segment, 1, BYTES("Clas"), BYTES("sid")));
    assert_true(slots_hash(segment, 1, BYTES("A"), BYTES("")) !=
                slots_hash(segment, 1, BYTES("B"), BYTES("")));
    assert_true(slots_hash(segment, 0, BYTES("C"), long_id) == slots_hash(other, 0, BYTES("C"), long_id));
    assert_true(slots_index(segment, UINT64_MAX) == SLOTS - 1);
    int used[SLOTS] = {0}, most = 0;
    for (int i = 0; i < 8 * SLOTS; i++) {
        int size = snprintf(text, sizeof text, "%d", i);
        int count = ++used[slots_index(
            segment, slots_hash(segment, 0, BYTES("C"), (struct bytes){text, (size_t)size}))];
        most = count > most ? count : most;
    }
    assert_true(most < 40); /* 8 expected in each */
}

static void names_are_found_again(void **state UNUSED)
{
    char longest[NAMESPACES_DATABASE_BYTES + 2];
    memset(longest, 'n', sizeof longest);
    assert_int_equal(namespaces_count(segment), 0);
    int ns = namespaces_find(segment, BYTES("stampd_demo"));
    assert_int_equal(ns, 0);
    assert_int_equal(namespaces_find(other, BYTES("stampd_z")), 1);
    assert_int_equal(namespaces_find(other, BYTES("stampd_demo")), 0);
    assert_int_equal(namespaces_find(segment, BYTES("stampd_dema")), 2);
    assert_int_equal(namespaces_find(segment, BYTES("stampd_demos")), 3);
    assert_int_equal(namespaces_find(segment, (struct bytes){longest, NAMESPACES_DATABASE_BYTES}), 4);
    assert_int_equal(strlen(namespaces_database(other, 4)), NAMESPACES_DATABASE_BYTES);
    assert_int_equal(namespaces_find(segment, (struct bytes){longest, NAMESPACES_DATABASE_BYTES + 1}), -1);
    assert_int_equal(namespaces_find(segment, BYTES("")), -1);
    assert_int_equal(namespaces_find(segment, BYTES("a\0b")), -1);
    assert_int_equal(namespaces_look_up(other, "stampd_demos"), 3);
    assert_int_equal(namespaces_look_up(other, "stampd_dem"), -1); /* nor is it added */
    assert_string_equal(namespaces_database(other, 3), "stampd_demos");
    assert_int_equal(namespaces_count(other), 5);
    assert_false(namespaces_is_clean(other, 3));
    namespaces_set_clean(segment, 3);
    assert_true(namespaces_is_clean(other, 3));
    assert_false(namespaces_is_clean(other, 2));
    for (int i = 5; i < NAMESPACES_MOST; i++) {
        char name[16];
        int size = snprintf(name, sizeof name, "d%d", i);
        assert_int_equal(namespaces_find(segment, (struct bytes){name, (size_t)size}), i);
    }
    assert_int_equal(namespaces_find(segment, BYTES("one_more")), -1);
    assert_int_equal(namespaces_find(segment, BYTES("stampd_z")), 1);
}

/* A writer of a name that died behind its first eight bytes, as the memory would show it. */
static void cut_name(const char *name)
{
    size_t size = strlen(name);
    char *found = memmem(segment->namespaces, namespaces_size(NULL), name, size);
    assert_non_null(found);
    memset(found + 7, 0, size - 7);
}

static void a_name_cut_off_blocks_nobody(void **state UNUSED)
{
    assert_int_equal(namespaces_find(segment, BYTES("database_one")), 0);
    assert_int_equal(namespaces_find(segment, BYTES("second")), 1);
    cut_name("database_one");
    assert_null(namespaces_database(segment, 0));
    assert_int_equal(namespaces_count(segment), 2);
    assert_int_equal(namespaces_find(other, BYTES("third")), 2);
    assert_int_equal(namespaces_find(other, BYTES("second")), 1);
    assert_int_equal(namespaces_find(other, BYTES("database_two")),
                     0); /* it fits: the place is this one's now */
    assert_int_equal(namespaces_find(other, BYTES("database_one")), 3);
    assert_string_equal(namespaces_database(segment, 0), "database_two");
}

static void add_names(void *argument)
{
    int(*found)[100] = argument, turn = (int)getpid();
    for (int i = 0; i < 100; i++) {
        int number = (i * 37 + turn) % 100;
        char name[40];
        int size = snprintf(name, sizeof name, "same_beginning_%02d_same_end", number);
        int ns = namespaces_find(segment, (struct bytes){name, (size_t)size});
        DEMAND(ns >= 0 && ns < 100);
        DEMAND(strcmp(namespaces_database(segment, ns), name) == 0);
        (*found)[number] = ns;
    }
}

static void those_who_add_at_once_agree(void **state UNUSED)
{
    enum { ADDERS = 4 };
    int(*found)[100] =
        mmap(NULL, ADDERS * sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t adders[ADDERS];
    for (int i = 0; i < ADDERS; i++)
        adders[i] = child_start(add_names, found + i);
    for (int i = 0; i < ADDERS; i++)
        child_expect(adders[i]);
    assert_int_equal(namespaces_count(segment), 100);
    for (int i = 1; i < ADDERS; i++)
        assert_memory_equal(found[0], found[i], sizeof *found);
    munmap(found, ADDERS * sizeof *found);
}

static void take_many(void *argument)
{
    uint32_t instance = (uint32_t)(uintptr_t)argument;
    int indexes[120];
    DEMAND(processes_take(segment, instance, 9, 60, indexes) == 60);
    DEMAND(processes_take(segment, instance, 9, 60, indexes + 60) == 60);
    for (int i = 0; i < 120; i++)
        DEMAND(processes_instance(segment, indexes[i]) == instance);
}

static void entries_are_taken_once(void **state UNUSED)
{
    int indexes[PROCESSES_MOST], counts[4] = {0};
    pid_t takers[3];
    for (uintptr_t i = 0; i < 3; i++)
        takers[i] = child_start(take_many, (void *)(i + 1));
    for (int i = 0; i < 3; i++)
        child_expect(takers[i]);
    for (int i = 0; i < PROCESSES_MOST; i++)
        counts[processes_instance(segment, i)]++;
    for (int i = 1; i <= 3; i++)
        assert_int_equal(counts[i], 120);
    assert_int_equal(processes_take(segment, 4, 5, 100, indexes), PROCESSES_MOST - 360);
    assert_int_equal(processes_take(segment, 4, 5, 1, indexes + 100), 0);
    assert_int_equal(processes_lock_file(other, indexes[0]), 5);
    processes_set(segment, indexes[3], PROCESS_HELD, 77);
    assert_int_equal(processes_state(other, indexes[3]), PROCESS_HELD);
    assert_int_equal(processes_pid(other, indexes[3]), 77);
    processes_release(segment, indexes[3]);
    assert_int_equal(processes_state(other, indexes[3]), PROCESS_FREE);
    assert_int_equal(processes_take(other, 5, 5, 2, indexes + 100), 1);
    assert_int_equal(indexes[100], indexes[3]);
}

/* --- death --- */

static struct gate reached;

static void mark_and_wait(void *argument)
{
    (void)argument;
    uint32_t slots[] = {1, 2, 3, 900};
    uint64_t own[4];
    segment_join(segment, 70);
    slots_begin(segment, 0);
    slots_mark(segment, slots, 4, own);
    slots_publish(segment, slots, 1, NULL); /* killed between the moving of two stamps */
    gate_pass(&reached);
    for (;;)
        pause();
}

static void the_recovery_repairs_the_dead_ones_bits_only(void **state UNUSED)
{
    uint32_t ours[] = {2, 3, 500};
    uint64_t own[3];
    become(segment, 71);
    become(other, 70);
    slots_begin(segment, 1);
    slots_mark(segment, ours, 3, own);
    gate_open(&reached);
    pid_t worker = child_start(mark_and_wait, NULL);
    gate_await(&reached);
    child_kill(worker);
    assert_int_equal(processes_namespace(segment, 70), 0);
    assert_true(slots_see(segment, 1).busy && slots_see(segment, 900).busy);
    assert_int_equal(slots_sweep(other), 4);
    assert_int_equal(processes_namespace(segment, 70), -1);
    assert_false(slots_see(segment, 1).busy || slots_see(segment, 900).busy);
    assert_true(slots_see(segment, 2).busy && slots_see(segment, 3).busy && slots_see(segment, 500).busy);
    assert_int_equal(slots_see(segment, 1).stamp, 2);
    assert_int_equal(slots_see(segment, 2).stamp, 1);
    assert_int_equal(slots_see(segment, 900).stamp, 1);
    assert_int_equal(slots_see(segment, 500).stamp, 0);
    assert_int_equal(slots_sweep(other), 0);
    slots_unmark(segment, ours, 3);
    slots_end(segment);
    gate_close(&reached);
}

static void sweep(void *argument)
{
    (void)argument;
    gate_pass(&reached);
    slots_sweep(segment);
}

/* Whoever sees the mark gone must see the stamp moved, also when the recovery process dies between the two.
 */
static void an_recovery_moves_the_stamp_before_it_clears_the_mark(void **state UNUSED)
{
    uint32_t slot = 7;
    uint64_t own;
    become(segment, 3);
    slots_begin(segment, 0);
    slots_mark(segment, &slot, 1, &own);
    crash_arm("recovery-moved", mapping_share);
    gate_open(&reached);
    pid_t recovery = child_start(sweep, NULL);
    int status;
    assert_int_equal(waitpid(recovery, &status, 0), recovery);
    assert_true(WIFSIGNALED(status));
    crash_arm("", mapping_share);
    assert_true(slots_see(other, slot).busy);
    assert_int_equal(slots_see(other, slot).stamp, own + 1);
    assert_int_equal(slots_sweep(segment), 1);
    assert_false(slots_see(other, slot).busy);
    gate_close(&reached);
}

/* Never ends by itself: whoever kills it may come late. */
static void sweep_and_wait(void *argument)
{
    sweep(argument);
    for (;;)
        pause();
}

static void a_repair_cut_off_is_begun_again(void **state UNUSED)
{
    enum { MANY = 1 << 20 };
    segment_close(segment);
    segment_close(other);
    segment = open_segment(MANY);
    other = open_segment(MANY);
    become(segment, 3);
    slots_begin(segment, 0);
    for (uint32_t slot = 0; slot < MANY; slot++)
        slots_mark(segment, &slot, 1, &(uint64_t){0});
    gate_open(&reached);
    for (int i = 0; i < 4; i++) {
        pid_t recovery = child_start(sweep_and_wait, NULL);
        gate_await(&reached);
        usleep(500);
        child_kill(recovery);
    }
    slots_sweep(segment);
    assert_int_equal(processes_namespace(other, 3), -1);
    for (uint32_t slot = 0; slot < MANY; slot++) {
        struct observation observation = slots_see(other, slot);
        if (observation.busy ||
            observation.stamp == 0) /* at least once; cut off between the two steps: once more */
            fail_msg("slot %u is left %s at stamp %d", slot, observation.busy ? "marked" : "unmarked",
                     (int)observation.stamp);
    }
    gate_close(&reached);
}

/* --- the protocol, against a database that is an array --- */

enum { DOCUMENTS = 3, WRITERS = 3, READERS = 3 }; /* two documents share a slot */

struct torture {
    _Atomic uint64_t database[DOCUMENTS]; /* versions */
    _Atomic uint64_t acknowledged[DOCUMENTS], returned[DOCUMENTS];
    _Atomic uint64_t reads, hits;
    _Atomic int is_over;
};
static struct torture *torture;

static uint32_t slot_of(int document)
{
    return (uint32_t)document / 2;
}

static void raise_to(_Atomic uint64_t *number, uint64_t least)
{
    uint64_t present = atomic_load(number);
    while (present < least && !atomic_compare_exchange_weak(number, &present, least))
        ;
}

static void write_often(void *argument)
{
    segment_join(segment, (int)(intptr_t)argument);
    unsigned int chance = (unsigned int)getpid();
    while (!atomic_load(&torture->is_over)) {
        int document = (int)((chance = chance * 1103515245 + 12345) >> 16) % DOCUMENTS;
        uint32_t slot = slot_of(document);
        uint64_t own;
        slots_begin(segment, 0);
        slots_mark(segment, &slot, 1, &own);
        uint64_t version = atomic_fetch_add(&torture->database[document], 1) + 1; /* the commit */
        if (chance & 64)
            sched_yield();
        raise_to(&torture->returned[document],
                 version); /* a reader has it already: marked, so from the database */
        slots_publish(segment, &slot, 1, NULL);
        slots_unmark(segment, &slot, 1);
        slots_end(segment);
        raise_to(&torture->acknowledged[document], version);
        if ((chance & 0x3f80) == 0)
            usleep(100);
    }
}

static void read_often(void *argument)
{
    (void)argument;
    uint64_t copy[DOCUMENTS] = {0}, tag[DOCUMENTS], reads = 0, hits = 0;
    bool have[DOCUMENTS] = {false};
    for (int i = 0; !atomic_load(&torture->is_over); i++, reads++) {
        int document = i % DOCUMENTS;
        uint64_t acknowledged = atomic_load(&torture->acknowledged[document]);
        uint64_t returned = atomic_load(&torture->returned[document]);
        struct observation observation = slots_see(segment, slot_of(document));
        if (have[document] && !observation.busy && tag[document] == observation.stamp) {
            hits++;
        } else {
            copy[document] = atomic_load(&torture->database[document]);
            tag[document] = observation.stamp;
            have[document] = true;
        }
        DEMAND(copy[document] >= acknowledged); /* P1 */
        DEMAND(copy[document] >= returned);     /* P2 */
        raise_to(&torture->returned[document], copy[document]);
    }
    atomic_fetch_add(&torture->reads, reads);
    atomic_fetch_add(&torture->hits, hits);
}

static void no_read_goes_back(void **state UNUSED)
{
    torture = mmap(NULL, sizeof *torture, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t writers[WRITERS], readers[READERS];
    static const int indexes[WRITERS] = {0, 63, 64};
    become(other, 64);
    for (int i = 0; i < WRITERS; i++)
        writers[i] = child_start(write_often, (void *)(intptr_t)indexes[i]);
    for (int i = 0; i < READERS; i++)
        readers[i] = child_start(read_often, NULL);
    for (int killed = 0; killed < 150;
         killed++) { /* the array is the backend: when the writer is gone, so is it */
        int victim = killed % WRITERS;
        usleep(2000);
        child_kill(writers[victim]);
        segment_join(other, indexes[victim]);
        slots_sweep(other);
        writers[victim] = child_start(write_often, (void *)(intptr_t)indexes[victim]);
    }
    atomic_store(&torture->is_over, 1);
    for (int i = 0; i < WRITERS; i++)
        child_expect(writers[i]);
    for (int i = 0; i < READERS; i++)
        child_expect(readers[i]);
    assert_true(atomic_load(&torture->hits) > 0);
    for (int document = 0; document < DOCUMENTS; document++)
        assert_false(slots_see(other, slot_of(document)).busy); /* P4 at rest */
    munmap(torture, sizeof *torture);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_two, close_two)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_commit_is_seen_in_its_order),
        TEST(every_word_of_marks_counts),
        TEST(all_stamps_move),
        TEST(a_name_has_one_hash_for_all),
        TEST(names_are_found_again),
        TEST(a_name_cut_off_blocks_nobody),
        TEST(those_who_add_at_once_agree),
        TEST(entries_are_taken_once),
        TEST(the_recovery_repairs_the_dead_ones_bits_only),
        TEST(a_repair_cut_off_is_begun_again),
        TEST(an_recovery_moves_the_stamp_before_it_clears_the_mark),
        TEST(no_read_goes_back),
    };
    return cmocka_run_group_tests_name("stamps", tests, NULL, NULL);
}
