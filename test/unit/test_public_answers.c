/* test_public_answers: answers in the segment that nginx reads without a lock: found only while their slots
 * stand still, whole, under their name; and a reader that survives whatever lies in the segment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "child.h"
#include "segment/processes.h"
#include "segment/public_answers.h"
#include "segment/segment_open.h"
#include "segment/slots.h"

enum { SLOTS = 1024, ENTRIES = 16, FORM = 7, SLOT = 5, OTHER_SLOT = 9 };

static const struct board_sizes sizes = {.slots = SLOTS,
                                         .public_answers_bytes = ENTRIES * PUBLIC_ENTRY_BYTES};
static struct segment *segment;
static struct public_view view;
static void *memory; /* as nginx has mapped it */
static size_t size;

static void open_as_nginx(void)
{
    int fd = open(folder_path("segment"), O_RDONLY);
    assert_true(public_view_measure(fd, &size));
    memory = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    assert_true(memory != MAP_FAILED);
    assert_true(public_view_open(&view, memory, size));
}

static void begin(void)
{
    char problem[256];
    int index;
    assert_true(segment_open_sized(&segment, folder_path("segment"), &sizes, problem, sizeof problem));
    assert_int_equal(processes_take(segment, 1, 1, 1, &index), 1);
    segment_join(segment, index);
    public_answers_set_form(segment, FORM);
    public_answers_beat(segment, clock_monotonic_ms());
}

static int open_all(void **state UNUSED)
{
    folder_make();
    begin();
    open_as_nginx();
    return 0;
}

static int close_all(void **state UNUSED)
{
    munmap(memory, size);
    segment_close(segment);
    folder_remove();
    return 0;
}

static struct bytes name_of(const char *id)
{
    static char text[PUBLIC_NAME_BYTES];
    return (struct bytes){text, public_view_name(BYTES("d"), BYTES("lab"), BYTES("Doc"), bytes_of(id), text)};
}

static void put_as(const char *id, uint64_t form, const char *body)
{
    const struct public_proof proofs[] = {
        {.slot = SLOT, .tag = slots_see(segment, SLOT).stamp},
        {.slot = OTHER_SLOT, .tag = slots_see(segment, OTHER_SLOT).stamp},
    };
    const struct public_answer answer = {BYTES("\"1\""), BYTES("Status: 200 OK\r\n\r\n"),
                                         BYTES("Status: 304 Not Modified\r\n\r\n"), bytes_of(body)};
    public_answers_put(segment, form, name_of(id), proofs, COUNT_OF(proofs), &answer);
}

static void put(const char *id, const char *body)
{
    put_as(id, FORM, body);
}

/* NULL: it is not found. */
static const char *find(const char *id)
{
    static struct public_copy copy;
    static char body[PUBLIC_ENTRY_BYTES];
    struct public_answer answer;
    if (!public_view_find(&view, name_of(id), &copy, &answer))
        return NULL;
    assert_true(bytes_equal(answer.etag, BYTES("\"1\"")));
    assert_true(bytes_equal(answer.head, BYTES("Status: 200 OK\r\n\r\n")));
    assert_true(bytes_equal(answer.unchanged, BYTES("Status: 304 Not Modified\r\n\r\n")));
    memcpy(body, answer.body.data, answer.body.size);
    body[answer.body.size] = '\0';
    return body;
}

static void an_answer_is_found_as_it_was_put(void **state UNUSED)
{
    assert_null(find("a"));
    put("a", "hello");
    assert_string_equal(find("a"), "hello");
    assert_null(find("b"));
    put("b", "");
    assert_string_equal(find("b"), "");
    assert_string_equal(find("a"), "hello");
}

static void a_commit_in_flight_hides_it_and_one_that_ended_too(void **state UNUSED)
{
    for (int i = 0; i < 2; i++) { /* by each of the two that prove it */
        const uint32_t slot = i ? OTHER_SLOT : SLOT;
        uint64_t own;
        put("a", "hello");
        assert_non_null(find("a"));
        slots_begin(segment, 0);
        slots_mark(segment, &slot, 1, &own);
        assert_null(find("a"));
        slots_publish(segment, &slot, 1, NULL);
        assert_null(find("a"));
        slots_unmark(segment, &slot, 1);
        slots_end(segment);
        assert_null(find("a"));
        put("a", "again");
        assert_string_equal(find("a"), "again");
    }
}

static void other_settings_hide_it(void **state UNUSED)
{
    put("a", "hello");
    public_answers_set_form(segment, FORM + 1);
    assert_null(find("a"));
    put_as("a", FORM + 1, "new");
    assert_string_equal(find("a"), "new");
    public_answers_set_form(segment, 0);
    put_as("a", 0, "none");
    assert_null(find("a"));
}

static void without_a_master_nothing_is_found(void **state UNUSED)
{
    put("a", "hello");
    public_answers_beat(segment, clock_monotonic_ms() - PUBLIC_BEAT_MS - 1);
    assert_null(find("a"));
    assert_false(public_view_is_living(&view));
    public_answers_beat(segment, clock_monotonic_ms() + 10 * PUBLIC_BEAT_MS);
    assert_null(find("a"));
    public_answers_beat(segment, clock_monotonic_ms());
    assert_non_null(find("a"));
}

static void many_make_room_for_each_other(void **state UNUSED)
{
    char id[16];
    int found = 0;
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "%d", i);
        put(id, id);
        assert_string_equal(find(id), id);
    }
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "%d", i);
        found += find(id) != NULL;
    }
    assert_true(found > 1 && found <= ENTRIES);
}

static void what_is_too_large_is_left_out(void **state UNUSED)
{
    static char body[PUBLIC_ENTRY_BYTES + 1], id[PUBLIC_NAME_BYTES + 1];
    size_t rest = strlen("\"1\"Status: 200 OK\r\n\r\nStatus: 304 Not Modified\r\n\r\n") + name_of("a").size;
    memset(body, 'x', PUBLIC_TEXT_BYTES - rest);
    put("a", body);
    assert_string_equal(find("a"), body);
    body[PUBLIC_TEXT_BYTES - rest] = 'x';
    put("b", body);
    assert_null(find("b"));
    memset(id, 'i', PUBLIC_NAME_BYTES);
    assert_int_equal(name_of(id).size, 0);
    id[PUBLIC_NAME_BYTES - strlen("d/lab/Doc/")] = '\0';
    assert_int_equal(name_of(id).size, PUBLIC_NAME_BYTES);
}

static void a_dead_writer_is_followed(void **state UNUSED)
{
    put("a", "hello");
    struct public_answers_head *head = segment->public_answers;
    for (int i = 0; i < ENTRIES; i++)
        atomic_fetch_or(&head->entries[i].lock, (uint64_t)segment_index(segment) + 1);
    assert_null(find("a"));
    put("a", "new");
    assert_null(find("a"));
    segment_join(segment, segment_index(segment));
    assert_null(find("a")); /* nothing of it is believed */
    put("a", "new");
    assert_string_equal(find("a"), "new");
}

/* The next start makes the segment anew while nginx has it mapped, with other sizes or the same. */
static void a_new_segment_is_no_proof_of_what_was_read_before(void **state UNUSED)
{
    const struct board_sizes other = {.slots = SLOTS, .shared_cache_bytes = 1 << 16};
    char problem[256];
    put("a", "hello");
    segment_close(segment);
    begin();
    assert_null(find("a"));
    put("a", "new");
    assert_string_equal(find("a"), "new"); /* by the same mapping */
    segment_close(segment);
    assert_true(segment_open_sized(&segment, folder_path("segment"), &other, problem, sizeof problem));
    assert_null(find("a"));
    int fd = open(folder_path("segment"), O_RDONLY);
    size_t now;
    assert_false(public_view_measure(fd, &now)); /* it has no answers */
    close(fd);
    volatile unsigned char sum = 0;
    for (size_t i = 0; i < size; i += 512) /* no page is beyond the end */
        sum = (unsigned char)(sum + ((const unsigned char *)memory)[i]);
}

static void those_who_attach_must_agree(void **state UNUSED)
{
    const struct board_sizes other = {.slots = SLOTS,
                                      .public_answers_bytes = sizes.public_answers_bytes / 2,
                                      .shared_cache_bytes = sizes.public_answers_bytes / 2};
    struct segment *stranger;
    char problem[256];
    assert_false(segment_open_sized(&stranger, folder_path("segment"), &other, problem, sizeof problem));
    assert_non_null(strstr(problem, "public_answers_mb"));
}

/* --- damage --- */

static uint64_t chance = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance % below;
}

/* Where the reader looks for sizes and numbers, and anywhere. */
static size_t draw_place(void)
{
    const size_t answers = public_view_answers_at(SLOTS);
    const size_t entry = answers + sizeof(struct public_answers_head) + draw(ENTRIES) * PUBLIC_ENTRY_BYTES;
    switch (draw(4)) {
    case 0:
        return draw(sizeof(struct mapping_head) + sizeof(struct slots_head));
    case 1:
        return answers + draw(sizeof(struct public_answers_head));
    case 2:
        return entry + draw(2 * sizeof(uint64_t) + sizeof(struct public_record));
    default:
        return draw(size);
    }
}

static void scribble(unsigned char *bytes, size_t count)
{
    for (uint64_t i = draw(24); i > 0; i--) {
        size_t at = draw_place();
        uint64_t word = draw(3) == 0 ? UINT64_MAX : draw(2) ? draw(8192) : chance;
        size_t width = at + sizeof word <= count ? sizeof word >> draw(4) : 1;
        memcpy(bytes + at, &word, width);
    }
}

/* The copy is a piece of memory of its own, so that a sanitizer sees a step beyond it. */
static void no_damage_harms_the_reader(void **state UNUSED)
{
    enum { ROUNDS = 60000 };
    unsigned char *whole = malloc(size);
    unsigned found = 0;
    for (int i = 0; i < 2 * ENTRIES; i++)
        put(i % 2 ? "a" : "other", "hello");
    memcpy(whole, memory, size);
    void *damaged = aligned_alloc(64, size); /* a multiple of 64 */
    assert_non_null(whole);
    assert_non_null(damaged);
    for (int i = 0; i < ROUNDS; i++) {
        struct public_view hostile;
        struct public_answer answer;
        struct public_copy copy;
        int64_t now_ms = clock_monotonic_ms();
        memcpy(damaged, whole, size);
        memcpy((char *)damaged + public_view_answers_at(SLOTS) + sizeof(uint64_t), &now_ms, sizeof now_ms);
        bool is_late = draw(2); /* the view was opened before */
        if (is_late && !public_view_open(&hostile, damaged, size))
            fail();
        scribble(damaged, size);
        if (!is_late && !public_view_open(&hostile, damaged, size))
            continue;
        if (!public_view_find(&hostile, name_of("a"), &copy, &answer))
            continue;
        const struct bytes texts[] = {answer.etag, answer.head, answer.unchanged, answer.body};
        for (size_t k = 0; k < COUNT_OF(texts); k++) {
            assert_true(texts[k].data >= (const char *)&copy && texts[k].size <= sizeof copy);
            assert_true(texts[k].data + texts[k].size <= (const char *)(&copy + 1));
        }
        found++;
    }
    assert_true(found > 0);
    free(whole);
    free(damaged);
}

static void files_of_any_size_are_measured(void **state UNUSED)
{
    char path[128];
    snprintf(path, sizeof path, "%s", folder_path("damaged"));
    unsigned char head[sizeof(struct mapping_head) + sizeof(struct slots_head)];
    for (int i = 0; i < 2000; i++) {
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        struct stat status;
        size_t measured;
        memcpy(head, memory, sizeof head);
        size_t at = draw(sizeof head - sizeof chance);
        memcpy(head + at, &chance, sizeof chance);
        assert_int_equal(write(fd, head, draw(2) ? sizeof head : draw(sizeof head)) >= 0, 1);
        assert_int_equal(ftruncate(fd, (off_t)draw(2 * size)), 0);
        assert_int_equal(fstat(fd, &status), 0);
        if (public_view_measure(fd, &measured))
            assert_true(measured <= (size_t)status.st_size);
        close(fd);
    }
}

/* --- many at once --- */

static void write_often(void *argument)
{
    int index = (int)(intptr_t)argument;
    char body[2048];
    segment->index = index;
    public_answers_recover(segment, index);
    chance += (uint64_t)getpid();
    for (;;) {
        char letter = (char)('a' + draw(26));
        size_t length = draw(sizeof body);
        memset(body, letter, length);
        body[length] = '\0';
        public_answers_beat(segment, clock_monotonic_ms());
        put(draw(2) ? "a" : "b", body);
    }
}

static void no_answer_is_torn(void **state UNUSED)
{
    enum { WRITERS = 3, KILLS = 100 };
    pid_t writers[WRITERS];
    int found = 0;
    for (intptr_t i = 0; i < WRITERS; i++)
        writers[i] = child_start(write_often, (void *)(i + 1));
    for (intptr_t killed = 0; killed < KILLS || found < 100;
         killed++) { /* now and then with a lock in hand */
        for (int i = 0; i < 200; i++) {
            const char *body = find(i % 2 ? "a" : "b");
            found += body != NULL;
            if (body && strspn(body, (char[]){body[0], '\0'}) != strlen(body))
                fail_msg("%s", body);
        }
        child_kill(writers[killed % WRITERS]);
        writers[killed % WRITERS] = child_start(write_often, (void *)(killed % WRITERS + 1));
    }
    for (int i = 0; i < WRITERS; i++)
        child_kill(writers[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_answer_is_found_as_it_was_put), TEST(a_commit_in_flight_hides_it_and_one_that_ended_too),
        TEST(other_settings_hide_it),           TEST(without_a_master_nothing_is_found),
        TEST(many_make_room_for_each_other),    TEST(what_is_too_large_is_left_out),
        TEST(a_dead_writer_is_followed),        TEST(a_new_segment_is_no_proof_of_what_was_read_before),
        TEST(those_who_attach_must_agree),      TEST(no_damage_harms_the_reader),
        TEST(files_of_any_size_are_measured),   TEST(no_answer_is_torn),
    };
    return cmocka_run_group_tests_name("public answers", tests, NULL, NULL);
}
