/* instance: entries through the life and death of workers, recovery processes, masters and whole instances.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "child.h"
#include "segment/processes.h"
#include "segment/slots.h"
#include "segment/segment_open.h"
#include "serve/instance.h"

enum { WORKERS = 4, BLOCK = 2 * WORKERS + 8 };
enum { LATER_LEAST_MS = 100, LATER_MOST_MS = 60000 }; /* when the next recovery process of an index begins */

static struct settings settings;
static char nothing[] = "";
static struct segment *segment;
static char problem[512];

static struct segment *open_segment(void)
{
    struct segment *handle;
    char path[4096], text[256];
    DEMAND(settings_segment_path(&settings, path, sizeof path));
    DEMAND(segment_open(&handle, path, 1024, 0, text, sizeof text));
    return handle;
}

static struct instance *start(struct segment *handle)
{
    char path[4096];
    struct instance *instance = NULL;
    DEMAND(settings_segment_path(&settings, path, sizeof path));
    if (!instance_start(&settings, handle, path, &instance, problem, sizeof problem))
        fprintf(stderr, "%s\n", problem);
    DEMAND(instance != NULL);
    return instance;
}

static int make_segment(void **state UNUSED)
{
    settings.workers = WORKERS;
    settings.segment = nothing;
    settings.run_directory = (char *)(uintptr_t)folder_make();
    segment = open_segment();
    return 0;
}

static int remove_segment(void **state UNUSED)
{
    segment_close(segment);
    folder_remove();
    return 0;
}

static int entries_of(uint32_t number)
{
    int count = 0;
    for (int i = 0; i < PROCESSES_MOST; i++)
        count += processes_instance(segment, i) == number;
    return count;
}

/* What a worker or a recovery process does to its entry, done by this process in its place. */
static void begin_commit(int index)
{
    segment_join(segment, index);
    slots_begin(segment, 0);
}

static void repair(int index)
{
    segment_join(segment, index);
    slots_sweep(segment);
}

static void each_has_its_own(void **state UNUSED)
{
    struct instance *one = start(segment), *two = start(segment);
    assert_int_equal(instance_number(one), 1);
    assert_int_equal(instance_number(two), 2);
    assert_int_equal(instance_entry_count(one), BLOCK);
    assert_int_equal(entries_of(1), BLOCK);
    assert_int_equal(entries_of(2), BLOCK);
    assert_int_equal(processes_instance(segment, instance_entry(two, BLOCK - 1)), 2);
    instance_take_over(one); /* the living are left alone */
    instance_take_over(two);
    assert_int_equal(entries_of(1), BLOCK);
    assert_int_equal(entries_of(2), BLOCK);
    instance_stop(one);
    assert_int_equal(entries_of(1), 0);
    one = start(segment);
    assert_int_equal(instance_number(one), 1);
    instance_stop(one);
    instance_stop(two);
}

static void the_setting_says_where(void **state UNUSED)
{
    char mapping[] = "/x/y", directory[] = "/run/stampd", path[16];
    struct settings own = {.segment = mapping, .run_directory = directory};
    assert_true(settings_segment_path(&own, path, sizeof path));
    assert_string_equal(path, "/x/y");
    own.segment = nothing;
    assert_false(settings_segment_path(&own, path, sizeof path)); /* does not fit */
}

static void too_few_entries_are_refused(void **state UNUSED)
{
    enum { NEEDED = WORKERS + 1 }; /* one is the thumbnail process */
    int indexes[PROCESSES_MOST];
    assert_int_equal(processes_take(segment, 400, 0, PROCESSES_MOST - NEEDED, indexes),
                     PROCESSES_MOST - NEEDED);
    struct instance *instance = start(segment); /* bounded by what is there */
    assert_int_equal(instance_entry_count(instance), NEEDED);
    instance_stop(instance);
    assert_int_equal(processes_take(segment, 400, 0, 1, indexes), 1);
    char path[4096];
    assert_true(settings_segment_path(&settings, path, sizeof path));
    assert_false(instance_start(&settings, segment, path, &instance, problem, sizeof problem));
    assert_non_null(strstr(problem, "only 4 free entries for 4 workers"));
    assert_int_equal(entries_of(0), NEEDED - 1); /* what it took is back */
}

static void an_index_goes_round(void **state UNUSED)
{
    struct instance *instance = start(segment);
    int indexes[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        indexes[i] = instance_take_index(instance);
        assert_int_equal(processes_state(segment, indexes[i]), PROCESS_HELD);
    }
    assert_int_equal(instance_take_index(instance), SEGMENT_NO_INDEX);
    instance_worker_forked(instance, indexes[5], 4711);
    assert_int_equal(processes_pid(segment, indexes[5]), 4711);
    instance_worker_gone(instance, indexes[5]);
    assert_int_equal(instance_take_index(instance), indexes[5]);
    assert_int_equal(instance_next_orphan(instance), SEGMENT_NO_INDEX);

    begin_commit(indexes[2]);
    begin_commit(indexes[3]);
    instance_worker_gone(instance, indexes[2]);
    instance_worker_gone(instance, indexes[3]);
    assert_int_equal(processes_state(segment, indexes[2]), PROCESS_DIRTY);
    assert_int_equal(instance_take_index(instance), SEGMENT_NO_INDEX); /* never given away in doubt */
    assert_int_equal(instance_next_orphan(instance), indexes[2]);
    assert_int_equal(instance_next_orphan(instance), indexes[3]);
    assert_int_equal(instance_next_orphan(instance),
                     SEGMENT_NO_INDEX); /* never two recovery processes for an index */
    int64_t died_ms = clock_monotonic_ms();
    instance_recovery_gone(instance, indexes[2]); /* died at once: again, a little later */
    assert_int_equal(processes_state(segment, indexes[2]), PROCESS_DIRTY);
    repair(indexes[3]);
    instance_recovery_gone(instance, indexes[3]);
    assert_int_equal(instance_take_index(instance), indexes[3]);
    while (instance_next_orphan(instance) != indexes[2]) {
        assert_true(clock_monotonic_ms() - died_ms < LATER_MOST_MS);
        clock_sleep_ms(5);
    }
    assert_true(clock_monotonic_ms() - died_ms >= LATER_LEAST_MS);
    repair(indexes[2]);
    instance_recovery_gone(instance, indexes[2]);
    assert_int_equal(instance_take_index(instance), indexes[2]);
    instance_stop(instance);
    assert_int_equal(entries_of(1), BLOCK); /* all were held by workers: a successor will settle them */
}

/* --- whole instances --- */

static struct gate ready;
static int *shared; /* [0], [1]: indexes in flight; [3]: pid of the worker */

static void work(void)
{
    gate_pass(&ready);
    for (;;)
        pause();
}

/* A master with two commits in flight and a worker that may outlive it. */
static void serve(void *argument)
{
    bool outlived = argument != NULL;
    struct segment *own = open_segment();
    struct instance *instance = start(own);
    for (int i = 0; i < 3; i++)
        shared[i] = instance_take_index(instance);
    for (int i = 0; i < 2; i++) {
        segment_join(own, shared[i]);
        slots_begin(own, 0);
        uint64_t stamp;
        uint32_t slot = 10 + (uint32_t)i;
        slots_mark(own, &slot, 1, &stamp);
    }
    pid_t worker = fork();
    DEMAND(worker >= 0);
    if (worker == 0) {
        prctl(PR_SET_PDEATHSIG, outlived ? 0 : SIGKILL);
        alarm(60);
        work();
    }
    shared[3] = (int)worker;
    for (;;)
        pause();
}

static pid_t start_master(bool outlived)
{
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    gate_open(&ready);
    pid_t master = child_start(serve, outlived ? shared : NULL);
    gate_await(&ready);
    for (int64_t end_ms = clock_monotonic_ms() + 10000; shared[3] == 0;) {
        clock_sleep_ms(1);
        assert_true(clock_monotonic_ms() < end_ms);
    }
    return master;
}

static void end_master(void)
{
    gate_close(&ready);
    munmap(shared, 4096);
}

/* Claims until there is an orphan: its processes may take a moment to be gone. */
static int await_orphan(struct instance *instance)
{
    for (int64_t end_ms = clock_monotonic_ms() + 10000;; clock_sleep_ms(2)) {
        instance_take_over(instance);
        int orphan = instance_next_orphan(instance);
        if (orphan != SEGMENT_NO_INDEX)
            return orphan;
        assert_true(clock_monotonic_ms() < end_ms);
    }
}

static void a_worker_that_outlives_its_master_is_waited_for(void **state UNUSED)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t master = start_master(true);
    struct instance *instance = start(segment);
    assert_int_equal(instance_number(instance), 2);
    child_kill(master);
    for (int i = 0; i < 3; i++) {
        instance_take_over(instance);
        assert_int_equal(instance_next_orphan(instance), SEGMENT_NO_INDEX);
    }
    assert_int_equal(entries_of(1), BLOCK);
    child_kill((pid_t)shared[3]);
    int first = await_orphan(instance), second = instance_next_orphan(instance);
    assert_true((first == shared[0] && second == shared[1]) || (first == shared[1] && second == shared[0]));
    assert_int_equal(instance_next_orphan(instance), SEGMENT_NO_INDEX);
    assert_int_equal(entries_of(1), 2); /* the others need no repair */

    struct instance *third = start(segment); /* it cannot claim what is claimed */
    assert_int_equal(instance_number(third), 3);
    instance_take_over(third);
    assert_int_equal(instance_next_orphan(third), SEGMENT_NO_INDEX);
    instance_stop(third);

    repair(first);
    instance_take_over(instance); /* repaired, but its recovery process is still there */
    assert_int_equal(entries_of(1), 2);
    repair(second);
    instance_recovery_gone(instance, first);
    assert_int_equal(entries_of(1), 1); /* the other recovery process is still there */
    instance_recovery_gone(instance, second);
    assert_int_equal(entries_of(1), 0);
    assert_false(slots_see(segment, 10).busy || slots_see(segment, 11).busy);
    third = start(segment); /* the number and its file are free again */
    assert_int_equal(instance_number(third), 1);
    instance_stop(third);
    instance_stop(instance);
    end_master();
}

static void claim_and_wait(void *argument)
{
    (void)argument;
    struct segment *own = open_segment();
    struct instance *instance = start(own);
    int orphan = SEGMENT_NO_INDEX;
    while (orphan == SEGMENT_NO_INDEX) {
        instance_take_over(instance);
        orphan = instance_next_orphan(instance);
        clock_sleep_ms(1);
    }
    segment_join(own, orphan);
    slots_sweep(own); /* killed when one is repaired and not yet released */
    gate_pass(&ready);
    for (;;)
        pause();
}

static void a_repairer_that_dies_is_followed_by_another(void **state UNUSED)
{
    pid_t master = start_master(false);
    child_kill(master); /* its worker dies by itself */
    pid_t repairer = child_start(claim_and_wait, NULL);
    gate_await(&ready);
    struct instance *instance = start(segment);
    instance_take_over(instance);
    assert_int_equal(instance_next_orphan(instance), SEGMENT_NO_INDEX);
    child_kill(repairer);
    int orphan = await_orphan(instance);
    assert_true(orphan == shared[0] || orphan == shared[1]);
    assert_int_equal(instance_next_orphan(instance), SEGMENT_NO_INDEX); /* the other was repaired */
    repair(orphan);
    instance_recovery_gone(instance, orphan);
    assert_int_equal(entries_of(1), 0);
    instance_take_over(instance);
    assert_int_equal(entries_of(instance_number(instance)) + entries_of(0), PROCESSES_MOST);
    instance_stop(instance);
    end_master();
}

static void a_child_may_drop_the_claims(void **state UNUSED)
{
    pid_t master = start_master(false);
    child_kill(master);
    struct instance *instance = start(segment), *other = start(segment);
    int orphan = await_orphan(instance);
    instance_drop_takeovers(instance); /* the only holder here: another may claim */
    assert_int_equal(await_orphan(other), orphan);
    instance_stop(other);
    instance_stop(instance);
    end_master();
}

static void a_lock_file_removed_says_nothing(void **state UNUSED)
{
    pid_t master = start_master(false);
    struct instance *instance = start(segment);
    assert_int_equal(unlink(folder_path("segment.instance-1")), 0);
    instance_take_over(instance);
    FILE *again = fopen(folder_path("segment.instance-1"), "w"); /* a new file, which nobody has locked */
    assert_non_null(again);
    fclose(again);
    instance_take_over(instance);
    assert_int_equal(entries_of(1), BLOCK);
    assert_int_equal(instance_next_orphan(instance), SEGMENT_NO_INDEX);
    child_kill(master);
    instance_stop(instance);
    end_master();
}

static void when_nobody_lives_all_is_new(void **state UNUSED)
{
    pid_t master = start_master(false);
    uint64_t generation = segment_generation(segment);
    child_kill(master);
    segment_close(segment); /* the worker dies by itself, a moment later */
    for (int64_t end_ms = clock_monotonic_ms() + 10000;; clock_sleep_ms(2)) {
        segment = open_segment();
        if (segment_generation(segment) > generation)
            break;
        assert_true(clock_monotonic_ms() < end_ms);
        segment_close(segment);
    }
    assert_int_equal(entries_of(0), PROCESSES_MOST);
    assert_false(slots_see(segment, 10).busy);
    struct instance *instance = start(segment);
    assert_int_equal(instance_number(instance), 1);
    instance_stop(instance);
    end_master();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_segment, remove_segment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_has_its_own),
        TEST(the_setting_says_where),
        TEST(too_few_entries_are_refused),
        TEST(an_index_goes_round),
        TEST(a_worker_that_outlives_its_master_is_waited_for),
        TEST(a_repairer_that_dies_is_followed_by_another),
        TEST(a_child_may_drop_the_claims),
        TEST(a_lock_file_removed_says_nothing),
        TEST(when_nobody_lives_all_is_new),
    };
    log_set_level(LOG_LEVEL_ERROR);
    return cmocka_run_group_tests_name("instance", tests, NULL, NULL);
}
