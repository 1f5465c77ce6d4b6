/* stamps: slots, marks, names and entries of the segment, processes that die at chosen points, and the
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
#include "document/stamps.h"
#include "edge/segment.h"

enum { SLOTS = 1024 };

static struct stamps *stamps, *other; /* two handles of one segment, as of two processes */

static struct stamps *open_segment(uint32_t slots)
{
    struct stamps *handle;
    char problem[256];
    assert_true(stamps_open(&handle, folder_path("segment"), slots, problem, sizeof problem));
    return handle;
}

static int open_two(void **state)
{
    (void)state;
    folder_make();
    stamps = open_segment(SLOTS);
    other = open_segment(SLOTS);
    return 0;
}

static int close_two(void **state)
{
    (void)state;
    stamps_close(stamps);
    stamps_close(other);
    folder_remove();
    return 0;
}

/* Takes entries up to that index and becomes it. */
static void become(struct stamps *handle, int index)
{
    int indexes[STAMPS_PROCESSES];
    while (stamps_entry_instance(handle, index) == 0)
        assert_int_equal(stamps_take_entries(handle, 1, 1, 1, indexes), 1);
    stamps_become(handle, index);
}

static void a_commit_is_seen_in_its_order(void **state)
{
    (void)state;
    uint32_t slots[] = {7, 1000};
    uint64_t own[2], moved[2];
    become(stamps, 0);
    become(other, 1);
    stamps_begin(stamps, 3);
    assert_int_equal(stamps_entry_space(other, 0), 3);
    assert_false(stamps_see(other, 7).busy);
    stamps_mark(stamps, slots, 2, own);
    assert_true(stamps_see(other, 7).busy && stamps_see(other, 1000).busy);
    assert_false(stamps_see(other, 8).busy);
    stamps_publish(other, slots, 1, NULL); /* somebody else's commit in slot 7 meanwhile */
    stamps_publish(stamps, slots, 2, moved);
    assert_true(moved[0] != own[0]); /* so the written copy gets no tag */
    assert_true(moved[1] == own[1]);
    assert_int_equal(stamps_see(other, 1000).stamp, moved[1] + 1);
    assert_true(stamps_see(other, 7).busy);
    stamps_unmark(stamps, slots, 2);
    assert_false(stamps_see(other, 7).busy);
    assert_int_equal(stamps_see(other, 7).stamp, 2);
    stamps_end(stamps);
    assert_int_equal(stamps_entry_space(other, 0), -1);
}

static void every_word_of_marks_counts(void **state)
{
    (void)state;
    uint32_t slot = 5;
    uint64_t own;
    for (int index = 0; index < STAMPS_PROCESSES; index += 63) { /* each word, first, last and middle bits */
        become(stamps, index);
        stamps_begin(stamps, 0);
        assert_false(stamps_see(other, slot).busy);
        stamps_mark(stamps, &slot, 1, &own);
        assert_true(stamps_see(other, slot).busy);
        stamps_unmark(stamps, &slot, 1);
        stamps_end(stamps);
    }
}

static void all_stamps_move(void **state)
{
    (void)state;
    stamps_move_all(stamps);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        assert_int_equal(stamps_see(other, slot).stamp, 1);
}

static void a_name_has_one_hash_for_all(void **state)
{
    (void)state;
    char text[4000];
    memset(text, 'x', sizeof text);
    struct bytes long_id = {text, sizeof text};
    uint64_t hash = stamps_hash(stamps, 1, BYTES("Class"), BYTES("id"));
    assert_true(hash == stamps_hash(other, 1, BYTES("Class"), BYTES("id")));
    assert_true(hash != stamps_hash(stamps, 2, BYTES("Class"), BYTES("id")));
    assert_true(hash != stamps_hash(stamps, 1, BYTES("Classi"), BYTES("d")));
    assert_true(hash != stamps_hash(stamps, 1, BYTES("Clas"), BYTES("sid")));
    assert_true(stamps_hash(stamps, 1, BYTES("A"), BYTES("")) !=
                stamps_hash(stamps, 1, BYTES("B"), BYTES("")));
    assert_true(stamps_hash(stamps, 0, BYTES("C"), long_id) == stamps_hash(other, 0, BYTES("C"), long_id));
    assert_true(stamps_slot(stamps, UINT64_MAX) == SLOTS - 1);
    int used[SLOTS] = {0}, most = 0;
    for (int i = 0; i < 8 * SLOTS; i++) {
        int size = snprintf(text, sizeof text, "%d", i);
        int count = ++used[stamps_slot(
            stamps, stamps_hash(stamps, 0, BYTES("C"), (struct bytes){text, (size_t)size}))];
        most = count > most ? count : most;
    }
    assert_true(most < 40); /* 8 expected in each */
}

static void names_are_found_again(void **state)
{
    (void)state;
    char longest[STAMPS_DATABASE_BYTES + 2];
    memset(longest, 'n', sizeof longest);
    assert_int_equal(stamps_space_count(stamps), 0);
    int space = stamps_space(stamps, BYTES("stampd_demo"));
    assert_int_equal(space, 0);
    assert_int_equal(stamps_space(other, BYTES("stampd_z")), 1);
    assert_int_equal(stamps_space(other, BYTES("stampd_demo")), 0);
    assert_int_equal(stamps_space(stamps, BYTES("stampd_dema")), 2);
    assert_int_equal(stamps_space(stamps, BYTES("stampd_demos")), 3);
    assert_int_equal(stamps_space(stamps, (struct bytes){longest, STAMPS_DATABASE_BYTES}), 4);
    assert_int_equal(strlen(stamps_space_database(other, 4)), STAMPS_DATABASE_BYTES);
    assert_int_equal(stamps_space(stamps, (struct bytes){longest, STAMPS_DATABASE_BYTES + 1}), -1);
    assert_int_equal(stamps_space(stamps, BYTES("")), -1);
    assert_int_equal(stamps_space(stamps, BYTES("a\0b")), -1);
    assert_string_equal(stamps_space_database(other, 3), "stampd_demos");
    assert_int_equal(stamps_space_count(other), 5);
    assert_false(stamps_space_is_clean(other, 3));
    stamps_space_set_clean(stamps, 3);
    assert_true(stamps_space_is_clean(other, 3));
    assert_false(stamps_space_is_clean(other, 2));
    for (int i = 5; i < STAMPS_NAMESPACES; i++) {
        char name[16];
        int size = snprintf(name, sizeof name, "d%d", i);
        assert_int_equal(stamps_space(stamps, (struct bytes){name, (size_t)size}), i);
    }
    assert_int_equal(stamps_space(stamps, BYTES("one_more")), -1);
    assert_int_equal(stamps_space(stamps, BYTES("stampd_z")), 1);
}

/* A writer of a name that died behind its first eight bytes, as the memory would show it. */
static void cut_name(const char *name)
{
    size_t size = strlen(name);
    char *found = memmem(stamps->board, (size_t)((char *)stamps->slots - (char *)stamps->board), name, size);
    assert_non_null(found);
    memset(found + 7, 0, size - 7);
}

static void a_name_cut_off_blocks_nobody(void **state)
{
    (void)state;
    assert_int_equal(stamps_space(stamps, BYTES("database_one")), 0);
    assert_int_equal(stamps_space(stamps, BYTES("second")), 1);
    cut_name("database_one");
    assert_null(stamps_space_database(stamps, 0));
    assert_int_equal(stamps_space_count(stamps), 2);
    assert_int_equal(stamps_space(other, BYTES("third")), 2);
    assert_int_equal(stamps_space(other, BYTES("second")), 1);
    assert_int_equal(stamps_space(other, BYTES("database_two")),
                     0); /* it fits: the place is this one's now */
    assert_int_equal(stamps_space(other, BYTES("database_one")), 3);
    assert_string_equal(stamps_space_database(stamps, 0), "database_two");
}

static void add_names(void *argument)
{
    int(*found)[100] = argument, turn = (int)getpid();
    for (int i = 0; i < 100; i++) {
        int number = (i * 37 + turn) % 100;
        char name[40];
        int size = snprintf(name, sizeof name, "same_beginning_%02d_same_end", number);
        int space = stamps_space(stamps, (struct bytes){name, (size_t)size});
        DEMAND(space >= 0 && space < 100);
        DEMAND(strcmp(stamps_space_database(stamps, space), name) == 0);
        (*found)[number] = space;
    }
}

static void those_who_add_at_once_agree(void **state)
{
    (void)state;
    enum { ADDERS = 4 };
    int(*found)[100] =
        mmap(NULL, ADDERS * sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t adders[ADDERS];
    for (int i = 0; i < ADDERS; i++)
        adders[i] = child_start(add_names, found + i);
    for (int i = 0; i < ADDERS; i++)
        child_expect(adders[i]);
    assert_int_equal(stamps_space_count(stamps), 100);
    for (int i = 1; i < ADDERS; i++)
        assert_memory_equal(found[0], found[i], sizeof *found);
    munmap(found, ADDERS * sizeof *found);
}

static void take_many(void *argument)
{
    uint32_t instance = (uint32_t)(uintptr_t)argument;
    int indexes[120];
    DEMAND(stamps_take_entries(stamps, instance, 9, 60, indexes) == 60);
    DEMAND(stamps_take_entries(stamps, instance, 9, 60, indexes + 60) == 60);
    for (int i = 0; i < 120; i++)
        DEMAND(stamps_entry_instance(stamps, indexes[i]) == instance);
}

static void entries_are_taken_once(void **state)
{
    (void)state;
    int indexes[STAMPS_PROCESSES], counts[4] = {0};
    pid_t takers[3];
    for (uintptr_t i = 0; i < 3; i++)
        takers[i] = child_start(take_many, (void *)(i + 1));
    for (int i = 0; i < 3; i++)
        child_expect(takers[i]);
    for (int i = 0; i < STAMPS_PROCESSES; i++)
        counts[stamps_entry_instance(stamps, i)]++;
    for (int i = 1; i <= 3; i++)
        assert_int_equal(counts[i], 120);
    assert_int_equal(stamps_take_entries(stamps, 4, 5, 100, indexes), STAMPS_PROCESSES - 360);
    assert_int_equal(stamps_take_entries(stamps, 4, 5, 1, indexes + 100), 0);
    assert_int_equal(stamps_entry_lock_file(other, indexes[0]), 5);
    stamps_entry_set(stamps, indexes[3], ENTRY_HELD, 77);
    assert_int_equal(stamps_entry_state(other, indexes[3]), ENTRY_HELD);
    assert_int_equal(stamps_entry_pid(other, indexes[3]), 77);
    stamps_release_entry(stamps, indexes[3]);
    assert_int_equal(stamps_entry_state(other, indexes[3]), ENTRY_FREE);
    assert_int_equal(stamps_take_entries(other, 5, 5, 2, indexes + 100), 1);
    assert_int_equal(indexes[100], indexes[3]);
}

/* --- death --- */

static struct gate reached;

static void mark_and_wait(void *argument)
{
    (void)argument;
    uint32_t slots[] = {1, 2, 3, 900};
    uint64_t own[4];
    stamps_become(stamps, 70);
    stamps_begin(stamps, 0);
    stamps_mark(stamps, slots, 4, own);
    stamps_publish(stamps, slots, 1, NULL); /* killed between the moving of two stamps */
    gate_pass(&reached);
    for (;;)
        pause();
}

static void the_heir_repairs_the_dead_ones_bits_only(void **state)
{
    (void)state;
    uint32_t ours[] = {2, 3, 500};
    uint64_t own[3];
    become(stamps, 71);
    become(other, 70);
    stamps_begin(stamps, 1);
    stamps_mark(stamps, ours, 3, own);
    gate_open(&reached);
    pid_t worker = child_start(mark_and_wait, NULL);
    gate_await(&reached);
    child_kill(worker);
    assert_int_equal(stamps_entry_space(stamps, 70), 0);
    assert_true(stamps_see(stamps, 1).busy && stamps_see(stamps, 900).busy);
    assert_int_equal(stamps_sweep(other), 4);
    assert_int_equal(stamps_entry_space(stamps, 70), -1);
    assert_false(stamps_see(stamps, 1).busy || stamps_see(stamps, 900).busy);
    assert_true(stamps_see(stamps, 2).busy && stamps_see(stamps, 3).busy && stamps_see(stamps, 500).busy);
    assert_int_equal(stamps_see(stamps, 1).stamp, 2);
    assert_int_equal(stamps_see(stamps, 2).stamp, 1);
    assert_int_equal(stamps_see(stamps, 900).stamp, 1);
    assert_int_equal(stamps_see(stamps, 500).stamp, 0);
    assert_int_equal(stamps_sweep(other), 0);
    stamps_unmark(stamps, ours, 3);
    stamps_end(stamps);
    gate_close(&reached);
}

static void sweep(void *argument)
{
    (void)argument;
    gate_pass(&reached);
    stamps_sweep(stamps);
}

/* Whoever sees the mark gone must see the stamp moved, also when the heir dies between the two. */
static void an_heir_moves_the_stamp_before_it_clears_the_mark(void **state)
{
    (void)state;
    uint32_t slot = 7;
    uint64_t own;
    become(stamps, 3);
    stamps_begin(stamps, 0);
    stamps_mark(stamps, &slot, 1, &own);
    crash_arm("heir-moved", segment_share);
    gate_open(&reached);
    pid_t heir = child_start(sweep, NULL);
    int status;
    assert_int_equal(waitpid(heir, &status, 0), heir);
    assert_true(WIFSIGNALED(status));
    crash_arm("", segment_share);
    assert_true(stamps_see(other, slot).busy);
    assert_int_equal(stamps_see(other, slot).stamp, own + 1);
    assert_int_equal(stamps_sweep(stamps), 1);
    assert_false(stamps_see(other, slot).busy);
    gate_close(&reached);
}

static void a_repair_cut_off_is_begun_again(void **state)
{
    (void)state;
    enum { MANY = 1 << 20 };
    stamps_close(stamps);
    stamps_close(other);
    stamps = open_segment(MANY);
    other = open_segment(MANY);
    become(stamps, 3);
    stamps_begin(stamps, 0);
    for (uint32_t slot = 0; slot < MANY; slot++)
        stamps_mark(stamps, &slot, 1, &(uint64_t){0});
    gate_open(&reached);
    for (int i = 0; i < 4; i++) {
        pid_t heir = child_start(sweep, NULL);
        gate_await(&reached);
        usleep(500);
        child_kill(heir);
    }
    stamps_sweep(stamps);
    assert_int_equal(stamps_entry_space(other, 3), -1);
    for (uint32_t slot = 0; slot < MANY; slot++) {
        struct look look = stamps_see(other, slot);
        if (look.busy || look.stamp == 0) /* at least once; cut off between the two steps: once more */
            fail_msg("slot %u is left %s at stamp %d", slot, look.busy ? "marked" : "unmarked",
                     (int)look.stamp);
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
    stamps_become(stamps, (int)(intptr_t)argument);
    unsigned int chance = (unsigned int)getpid();
    while (!atomic_load(&torture->is_over)) {
        int document = (int)((chance = chance * 1103515245 + 12345) >> 16) % DOCUMENTS;
        uint32_t slot = slot_of(document);
        uint64_t own;
        stamps_begin(stamps, 0);
        stamps_mark(stamps, &slot, 1, &own);
        uint64_t version = atomic_fetch_add(&torture->database[document], 1) + 1; /* the commit */
        if (chance & 64)
            sched_yield();
        raise_to(&torture->returned[document],
                 version); /* a reader has it already: marked, so from the database */
        stamps_publish(stamps, &slot, 1, NULL);
        stamps_unmark(stamps, &slot, 1);
        stamps_end(stamps);
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
        struct look look = stamps_see(stamps, slot_of(document));
        if (have[document] && !look.busy && tag[document] == look.stamp) {
            hits++;
        } else {
            copy[document] = atomic_load(&torture->database[document]);
            tag[document] = look.stamp;
            have[document] = true;
        }
        DEMAND(copy[document] >= acknowledged); /* P1 */
        DEMAND(copy[document] >= returned);     /* P2 */
        raise_to(&torture->returned[document], copy[document]);
    }
    atomic_fetch_add(&torture->reads, reads);
    atomic_fetch_add(&torture->hits, hits);
}

static void no_read_goes_back(void **state)
{
    (void)state;
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
        stamps_become(other, indexes[victim]);
        stamps_sweep(other);
        writers[victim] = child_start(write_often, (void *)(intptr_t)indexes[victim]);
    }
    atomic_store(&torture->is_over, 1);
    for (int i = 0; i < WRITERS; i++)
        child_expect(writers[i]);
    for (int i = 0; i < READERS; i++)
        child_expect(readers[i]);
    assert_true(atomic_load(&torture->hits) > 0);
    for (int document = 0; document < DOCUMENTS; document++)
        assert_false(stamps_see(other, slot_of(document)).busy); /* P4 at rest */
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
        TEST(the_heir_repairs_the_dead_ones_bits_only),
        TEST(a_repair_cut_off_is_begun_again),
        TEST(an_heir_moves_the_stamp_before_it_clears_the_mark),
        TEST(no_read_goes_back),
    };
    return cmocka_run_group_tests_name("stamps", tests, NULL, NULL);
}
