/* segment: its life by flock: new, attached, refused; starters that race and die. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "child.h"
#include "edge/mapping.h"

static const uint64_t MAGIC = 0x1122334455667788;
enum { LAYOUT = 3, SIZE = 20000 };

static char problem[512];

static bool open_at(struct mapping *mapping, const char *name)
{
    return mapping_open(mapping, folder_path(name), MAGIC, LAYOUT, SIZE, problem, sizeof problem);
}

static const struct mapping_head *head_of(const struct mapping *mapping)
{
    return mapping->memory;
}

static int make_folder(void **state UNUSED)
{
    folder_make();
    return 0;
}

static int remove_folder(void **state UNUSED)
{
    folder_remove();
    return 0;
}

static void write_file(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(folder_path(name), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

static void without_users_it_is_made_anew(void **state UNUSED)
{
    struct mapping mapping;
    assert_true(open_at(&mapping, "segment"));
    struct mapping_head first = *head_of(&mapping);
    assert_true(mapping.is_new);
    assert_int_equal(first.generation, 1);
    assert_int_equal(first.installation >> 24, MAPPING_INSTALLATION_MARK);
    assert_int_equal(mapping.size, SIZE);
    assert_true(fcntl(mapping.fd, F_GETFD) & FD_CLOEXEC);
    char *bytes = mapping.memory;
    memset(bytes + sizeof first, 'x', SIZE - sizeof first);
    mapping_close(&mapping);

    assert_true(open_at(&mapping, "segment"));
    assert_true(mapping.is_new);
    assert_int_equal(head_of(&mapping)->generation, 2);
    assert_int_equal(head_of(&mapping)->installation, first.installation);
    assert_true(head_of(&mapping)->seed != first.seed);
    bytes = mapping.memory;
    for (size_t i = sizeof first; i < SIZE; i++)
        assert_int_equal(bytes[i], 0);
    mapping_close(&mapping);
}

static void with_users_it_is_attached(void **state UNUSED)
{
    struct mapping one, two;
    assert_true(open_at(&one, "segment"));
    ((char *)one.memory)[SIZE - 1] = 'x';
    assert_true(open_at(&two, "segment"));
    assert_false(two.is_new);
    assert_int_equal(((char *)two.memory)[SIZE - 1], 'x');
    mapping_close(&one);
    assert_true(open_at(&one, "segment"));
    assert_false(one.is_new);
    assert_int_equal(head_of(&one)->generation, 1);
    mapping_close(&one);
    mapping_close(&two);
    assert_true(open_at(&one, "segment"));
    assert_true(one.is_new);
    mapping_close(&one);
}

static void hold(void *argument)
{
    (void)argument;
    for (;;)
        pause();
}

static void a_child_keeps_it_alive(void **state UNUSED)
{
    struct mapping mapping, other;
    assert_true(open_at(&mapping, "segment"));
    pid_t child = child_start(hold, NULL);
    mapping_close(&mapping);
    assert_true(open_at(&other, "segment"));
    assert_false(other.is_new);
    mapping_close(&other);
    child_kill(child);
    assert_true(open_at(&other, "segment"));
    assert_true(other.is_new);
    assert_int_equal(head_of(&other)->generation, 2);
    mapping_close(&other);
}

/* A reader that holds no lock, as nginx is one, has it mapped while the next start makes it anew, smaller. */
static void no_page_ends_under_a_reader(void **state UNUSED)
{
    struct mapping mapping;
    assert_true(open_at(&mapping, "segment"));
    memset((char *)mapping.memory + SIZE - 8, 'x', 8);
    int fd = open(folder_path("segment"), O_RDONLY);
    const char *view = mapping_view(fd, SIZE);
    assert_non_null(view);
    close(fd);
    assert_int_equal(view[SIZE - 1], 'x');
    mapping_close(&mapping);
    assert_true(mapping_open(&mapping, folder_path("segment"), MAGIC, LAYOUT, 4096, problem, sizeof problem));
    assert_true(mapping.is_new);
    assert_int_equal(view[SIZE - 1], 0);
    mapping_view_end(view, SIZE);
    mapping_close(&mapping);
}

static void what_does_not_match_is_refused(void **state UNUSED)
{
    struct mapping one, two;
    assert_true(open_at(&one, "segment"));
    assert_false(
        mapping_open(&two, folder_path("segment"), MAGIC, LAYOUT + 1, SIZE, problem, sizeof problem));
    assert_non_null(strstr(problem, "another release"));
    assert_false(
        mapping_open(&two, folder_path("segment"), MAGIC, LAYOUT, SIZE + 64, problem, sizeof problem));
    assert_non_null(strstr(problem, "segment_slots, shared_cache_mb"));
    assert_false(
        mapping_open(&two, folder_path("segment"), MAGIC + 1, LAYOUT, SIZE, problem, sizeof problem));
    assert_non_null(strstr(problem, "something else"));
    assert_int_equal(truncate(folder_path("segment"), SIZE - 1), 0);
    assert_false(open_at(&two, "segment"));
    assert_non_null(strstr(problem, "was cut"));
    assert_int_equal(truncate(folder_path("segment"), SIZE), 0);
    assert_true(open_at(&two, "segment"));
    mapping_close(&two);
    mapping_close(&one);
    /* without users another layout and size are no obstacle, and a cut file neither */
    assert_int_equal(truncate(folder_path("segment"), 1000), 0);
    assert_true(
        mapping_open(&two, folder_path("segment"), MAGIC, LAYOUT + 1, SIZE / 2, problem, sizeof problem));
    assert_int_equal(head_of(&two)->generation, 2);
    mapping_close(&two);
}

static void a_foreign_file_is_left_as_it_is(void **state UNUSED)
{
    static const char text[] = "important words\n", zeros[300];
    char again[sizeof text];
    struct mapping mapping;
    write_file("text", text, sizeof text);
    assert_false(open_at(&mapping, "text"));
    assert_non_null(strstr(problem, "something else"));
    FILE *file = fopen(folder_path("text"), "r");
    assert_int_equal(fread(again, 1, sizeof again, file), sizeof text);
    assert_memory_equal(again, text, sizeof text);
    fclose(file);
    write_file("zeros", zeros, sizeof zeros); /* longer than a head: somebody's */
    assert_false(open_at(&mapping, "zeros"));
    assert_false(
        mapping_open(&mapping, folder_path("no/where"), MAGIC, LAYOUT, SIZE, problem, sizeof problem));
    assert_false(mapping_open(&mapping, "/dev/null", MAGIC, LAYOUT, SIZE, problem, sizeof problem));
    assert_non_null(strstr(problem, "not a plain file"));
}

static struct gate locked;

/* Another starter that looks at the file for a moment. */
static void look_at(void *argument)
{
    int fd = open(folder_path(argument), O_RDWR);
    DEMAND(fd >= 0 && flock(fd, LOCK_SH) == 0);
    gate_pass(&locked);
    clock_sleep_ms(60);
}

static void a_making_cut_off_is_begun_again(void **state UNUSED)
{
    struct mapping mapping;
    struct mapping_head head = {.magic = MAGIC, .installation = 0x53001122, .generation = 41};
    char name[] = "half";
    write_file(name, &head, sizeof head);
    gate_open(&locked);
    pid_t starter = child_start(look_at, name);
    gate_await(&locked);
    assert_true(open_at(&mapping, name)); /* waits until somebody can make it */
    child_expect(starter);
    gate_close(&locked);
    assert_true(mapping.is_new);
    assert_int_equal(head_of(&mapping)->generation, 42);
    assert_int_equal(head_of(&mapping)->installation, 0x53001122);
    mapping_close(&mapping);
    memset(&head, 0, sizeof head);
    write_file("blank", &head, sizeof head);
    assert_true(open_at(&mapping, "blank"));
    assert_int_equal(head_of(&mapping)->generation, 1);
    mapping_close(&mapping);
}

static void fill_up(void *argument)
{
    (void)argument;
    struct mapping mapping;
    struct rlimit limit = {.rlim_cur = SIZE / 2, .rlim_max = SIZE / 2};
    signal(SIGXFSZ, SIG_IGN);
    DEMAND(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    DEMAND(!open_at(&mapping, "segment"));
    DEMAND(strstr(problem, "no room for 20000 bytes") != NULL);
}

static void no_room_is_said_at_once(void **state UNUSED)
{
    struct mapping mapping;
    struct stat status;
    child_expect(child_start(fill_up, NULL));
    assert_int_equal(stat(folder_path("segment"), &status), 0);
    assert_int_equal(status.st_size, sizeof(struct mapping_head));
    assert_true(open_at(&mapping, "segment"));
    assert_int_equal(head_of(&mapping)->generation, 2);
    assert_int_equal(stat(folder_path("segment"), &status), 0);
    assert_true(status.st_blocks * 512 >= SIZE);
    mapping_close(&mapping);
}

/* Opens again and again; while it is open nobody may make it anew: our own count would be gone. */
static void open_often(void *argument)
{
    int times = *(int *)argument;
    for (int i = 0; i < times; i++) {
        struct mapping mapping;
        DEMAND(open_at(&mapping, "segment"));
        const struct mapping_head *head = mapping.memory;
        _Atomic uint64_t *living = (_Atomic uint64_t *)(void *)((char *)mapping.memory + SIZE - 32);
        uint64_t generation = head->generation;
        atomic_fetch_add(living, 1);
        DEMAND(head->magic == MAGIC && head->layout == LAYOUT && head->size == SIZE);
        usleep((useconds_t)(i % 3) * 50);
        DEMAND(head->generation == generation);
        DEMAND(atomic_fetch_sub(living, 1) >= 1);
        mapping_close(&mapping);
    }
}

static void starters_race_and_die(void **state UNUSED)
{
    enum { STARTERS = 5, KILLED = 40 };
    int many = 150, endless = 1000000;
    pid_t starters[STARTERS];
    int64_t start_ms = clock_monotonic_ms();
    for (int i = 0; i < STARTERS; i++)
        starters[i] = child_start(open_often, &many);
    for (int i = 0; i < KILLED; i++) { /* one more at a time, killed wherever it is */
        pid_t victim = child_start(open_often, &endless);
        usleep((useconds_t)(i * 37 % 1500));
        child_kill(victim);
    }
    for (int i = 0; i < STARTERS; i++)
        child_expect(starters[i]);
    assert_true(clock_monotonic_ms() - start_ms < 60000);
    struct mapping mapping;
    assert_true(open_at(&mapping, "segment"));
    assert_true(mapping.is_new);
    mapping_close(&mapping);
}

static void the_last_user_erases_it(void **state UNUSED)
{
    static const char mark[] = "diagnosis";
    struct mapping first, other, next;
    struct stat status;
    assert_true(open_at(&first, "segment"));
    memcpy((char *)first.memory + sizeof(struct mapping_head), mark, sizeof mark);
    const struct mapping_head before = *(struct mapping_head *)first.memory;
    assert_true(open_at(&other, "segment"));
    int fd = open(folder_path("segment"), O_RDONLY);
    const char *view = mapping_view(fd, SIZE); /* as the module of nginx has it */
    assert_non_null(view);
    mapping_erase(&first);
    mapping_close(&first);
    assert_memory_equal((char *)other.memory + sizeof before, mark, sizeof mark); /* it has a user */
    mapping_erase(&other);
    mapping_close(&other);
    assert_true(fstat(fd, &status) == 0 && status.st_size == SIZE);
    for (int i = sizeof before; i < SIZE; i++)
        assert_int_equal(view[i], 0);
    mapping_view_end(view, SIZE);
    close(fd);
    assert_true(open_at(&next, "segment") && next.is_new);
    const struct mapping_head *after = next.memory;
    assert_true(after->installation == before.installation && after->generation == before.generation + 1);
    assert_true(((char *)next.memory)[sizeof before] == 0);
    mapping_close(&next);
}

static void memory_is_told_from_a_disk(void **state UNUSED)
{
    assert_true(mapping_is_in_memory("/dev/shm/none/such"));
    assert_false(mapping_is_in_memory("/proc/self"));
    assert_false(mapping_is_in_memory("none"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_users_it_is_made_anew),   TEST(with_users_it_is_attached),
        TEST(a_child_keeps_it_alive),          TEST(no_page_ends_under_a_reader),
        TEST(what_does_not_match_is_refused),  TEST(a_foreign_file_is_left_as_it_is),
        TEST(a_making_cut_off_is_begun_again), TEST(no_room_is_said_at_once),
        TEST(starters_race_and_die),           TEST(the_last_user_erases_it),
        TEST(memory_is_told_from_a_disk),
    };
    return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
