/* test_records_parts: more records wait for the disk than one part of a save has: whoever dies in between, a
 * change of several keys is on disk whole or not at all. */
#include "records/records_private.h" /* before the fixtures, which have a variable of this name */

#include "records_disk_fixture.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/crash.h"
#include "edge/mapping.h"

enum { KEYS = 8, PLAN = 12, FILLERS = 1600, FILLED_MOST = 2400 };

/* --- a plan, and what it leads to --- */

/* Of one change; `filled`: so many other records are changed before it. */
struct deed {
    enum records_deed deed;
    int key, to;
    unsigned more; /* SET: further keys, as bits */
    bool is_immediate;
    int filled;
};

/* Of each key the version of its record, 0: none.  Two keys of one version are keys of one record. */
struct model {
    int key[KEYS], filler[FILLERS];
    int version, next_filler;
    unsigned joined[KEYS]; /* by the changes since the last save: the other keys, as bits */
};

static struct deed plan[PLAN];
static int planned;

static unsigned keys_of(const struct model *model, int version)
{
    unsigned keys = 0;
    for (int i = 0; i < KEYS; i++)
        keys |= version && model->key[i] == version ? 1u << i : 0;
    return keys;
}

static void give_all(struct model *model, unsigned keys, int version)
{
    for (int i = 0; i < KEYS; i++)
        if (keys >> i & 1)
            model->key[i] = version;
}

static void join(struct model *model, unsigned keys)
{
    for (int i = 0; i < KEYS; i++)
        if (keys & (model->joined[i] | 1u << i))
            keys |= model->joined[i] | 1u << i;
    for (int i = 0; i < KEYS; i++)
        if (keys >> i & 1)
            model->joined[i] = keys;
}

static enum records_outcome outcome_of(const struct model *model, const struct deed *deed)
{
    int own = model->key[deed->key], to = model->key[deed->to];
    if (deed->deed == RECORDS_SET) {
        for (int i = 0; i < KEYS; i++)
            if (deed->more >> i & 1 && model->key[i] && model->key[i] != own)
                return RECORDS_NOT_FREE;
        return RECORDS_OK;
    }
    if (!own)
        return RECORDS_NOT_FOUND;
    return deed->deed == RECORDS_LINK && to && to != own ? RECORDS_NOT_FREE : RECORDS_OK;
}

static enum records_outcome expect_deed(struct model *model, const struct deed *deed)
{
    int own = model->key[deed->key], *to = &model->key[deed->to];
    bool has_to = deed->deed == RECORDS_RENAME || deed->deed == RECORDS_LINK;
    unsigned keys = keys_of(model, own), others = has_to ? keys_of(model, *to) | 1u << deed->to : 0;
    enum records_outcome outcome = outcome_of(model, deed);
    if (outcome != RECORDS_OK)
        return outcome;
    join(model, keys | others | deed->more | 1u << deed->key);
    if (deed->deed == RECORDS_SET)
        give_all(model, keys | deed->more | 1u << deed->key, model->version);
    else if (deed->deed == RECORDS_DELETE)
        give_all(model, keys, 0);
    else if (deed->deed == RECORDS_UNLINK)
        model->key[deed->key] = 0;
    else if (deed->deed == RECORDS_LINK)
        *to = own;
    else if (deed->key != deed->to) {
        if (*to != own)
            give_all(model, keys_of(model, *to), 0);
        model->key[deed->key] = 0;
        *to = own;
    }
    return outcome;
}

static const char *name_of(int key)
{
    static const char names[KEYS][3] = {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"};
    return names[key];
}

static void run_deed(const struct deed *deed, int version, enum records_outcome expected)
{
    char text[16];
    struct bytes more[KEYS];
    size_t count = 0;
    snprintf(text, sizeof text, "%d", version);
    for (int i = 0; i < KEYS; i++)
        if (deed->more >> i & 1)
            more[count++] = bytes_of(name_of(i));
    bool is_set = deed->deed == RECORDS_SET;
    enum records_outcome outcome =
        RUN(.deed = deed->deed, .key = bytes_of(name_of(deed->key)), .to = bytes_of(name_of(deed->to)),
            .more = more, .more_count = count, .type = is_set ? RECORDS_STRING : RECORDS_VOID,
            .content = is_set ? bytes_of(text) : BYTES(""), .may_overwrite = true,
            .is_immediate = deed->is_immediate, .is_persisted = is_set);
    DEMAND(outcome == expected);
}

static void fill(struct model *model, int count, bool is_run)
{
    for (int i = 0; i < count; i++) {
        int number = model->next_filler++ % FILLERS;
        char key[16], text[16];
        snprintf(key, sizeof key, "f%d", number);
        snprintf(text, sizeof text, "%d", ++model->filler[number]);
        if (is_run)
            DEMAND(RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_STRING,
                       .content = bytes_of(text), .may_overwrite = true, .is_persisted = true) == RECORDS_OK);
    }
}

static void follow_plan(struct model *model, bool is_run)
{
    for (int i = 0; i < planned; i++) {
        fill(model, plan[i].filled, is_run);
        model->version++;
        enum records_outcome outcome = expect_deed(model, &plan[i]);
        if (is_run)
            run_deed(&plan[i], model->version, outcome);
    }
}

/* --- what the records are --- */

static int version_under(const char *key)
{
    char text[16];
    if (RUN(.deed = RECORDS_GET, .key = bytes_of(key)) != RECORDS_OK)
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)found.content.size, found.content.data);
    return atoi(text);
}

/* Of keys that one change has joined, all are as before or all as after; true: as after. */
static bool check_joined(const struct model *before, const struct model *after, unsigned keys, const int *is)
{
    bool is_before = true, is_after = true;
    for (int i = 0; i < KEYS; i++)
        if (keys >> i & 1) {
            is_before = is_before && is[i] == before->key[i];
            is_after = is_after && is[i] == after->key[i];
        }
    if (!is_before && !is_after)
        for (int i = 0; i < KEYS; i++)
            print_message("k%d: is %d, was %d, became %d, joined %x\n", i, is[i], before->key[i],
                          after->key[i], after->joined[i]);
    assert_true(is_before || is_after);
    return is_after;
}

/* True: the records are as after the plan. */
static bool check(const struct model *before, const struct model *after)
{
    int is[KEYS];
    bool is_after = true;
    for (int i = 0; i < KEYS; i++)
        is[i] = version_under(name_of(i));
    for (int i = 0; i < KEYS; i++)
        is_after = check_joined(before, after, after->joined[i] | 1u << i, is) && is_after;
    for (int i = 0; i < FILLERS; i++) {
        char key[16];
        snprintf(key, sizeof key, "f%d", i);
        int version = version_under(key);
        assert_true(version == before->filler[i] || version == after->filler[i]);
        is_after = is_after && version == after->filler[i];
    }
    return is_after;
}

static void adopt(struct model *model)
{
    model->next_filler = 0;
    for (int i = 0; i < FILLERS; i++) {
        char key[16];
        snprintf(key, sizeof key, "f%d", i);
        model->filler[i] = version_under(key);
    }
    for (int i = 0; i < KEYS; i++)
        model->key[i] = version_under(name_of(i));
    memset(model->joined, 0, sizeof model->joined);
}

/* --- deaths --- */

static struct model before;

static void change_and_save(void *argument UNUSED)
{
    struct model own = before;
    follow_plan(&own, true);
    records_save_rest(records);
}

static bool dies(const char *point, int passage)
{
    char list[60];
    int status = 0;
    snprintf(list, sizeof list, "%s:%d", point, passage);
    crash_arm(list, mapping_share);
    pid_t pid = child_start(change_and_save, NULL);
    if (waitpid(pid, &status, 0) != pid)
        fail_msg("the child is gone");
    crash_arm("", mapping_share);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static const char *const points[] = {"records-synced", "records-part-written", "disk-log-written",
                                     "disk-table-emptied"};

/* One process runs the plan and saves, and dies at this step; then the memory is lost.  `is_saved`: another
 * one saves before.  True: it died. */
static bool try_plan(const char *point, int passage, bool is_saved)
{
    struct model after = before;
    follow_plan(&after, false);
    bool is_dead = dies(point, passage);
    records_check(records);
    if (is_saved)
        records_save_rest(records);
    restart();
    bool is_after = check(&before, &after);
    assert_true(is_after || (is_dead && !is_saved));
    adopt(&after);
    before = after;
    return is_dead;
}

static void start_with(const struct deed *deed)
{
    memset(&before, 0, sizeof before);
    for (int i = 0; i < KEYS; i++)
        RUN(.deed = RECORDS_DELETE, .key = bytes_of(name_of(i)), .is_immediate = true);
    adopt(&before);
    plan[0] = *deed;
    planned = 1;
    follow_plan(&before, true);
    records_save_rest(records);
    memset(before.joined, 0, sizeof before.joined);
}

/* What is known to go wrong when a save ends anywhere. */
static const struct known {
    struct deed first; /* saved before */
    struct deed deeds[3];
    int count;
} known[] = {
    /* under both keys */
    {{.deed = RECORDS_SET, .key = 0},
     {{.deed = RECORDS_SET, .key = 1}, {.deed = RECORDS_RENAME, .key = 0, .to = 1, .filled = 1500}},
     2},
    {{.deed = RECORDS_SET, .key = 0},
     {{.deed = RECORDS_SET, .key = 1},
      {.deed = RECORDS_RENAME, .key = 0, .to = 1, .filled = 1500, .is_immediate = true}},
     2},
    /* under neither */
    {{.deed = RECORDS_SET, .key = 0},
     {{.deed = RECORDS_RENAME, .key = 0, .to = 1},
      {.deed = RECORDS_RENAME, .key = 1, .to = 2, .filled = 1500}},
     2},
    {{.deed = RECORDS_SET, .key = 0},
     {{.deed = RECORDS_RENAME, .key = 0, .to = 1, .is_immediate = true},
      {.deed = RECORDS_RENAME, .key = 1, .to = 2, .filled = 1500, .is_immediate = true}},
     2},
    /* with the end of a part between its keys, or just before them */
    {{.deed = RECORDS_SET, .key = 0},
     {{.deed = RECORDS_RENAME, .key = 0, .to = 1, .filled = 999}, {.deed = RECORDS_SET, .key = 5}},
     2},
    {{.deed = RECORDS_SET, .key = 0},
     {{.deed = RECORDS_RENAME, .key = 0, .to = 1, .filled = 1000}, {.deed = RECORDS_SET, .key = 5}},
     2},
    /* a key is lost, and comes back */
    {{.deed = RECORDS_SET, .key = 0, .more = 6},
     {{.deed = RECORDS_SET, .key = 3}, {.deed = RECORDS_RENAME, .key = 2, .to = 3, .filled = 1500}},
     2},
    {{.deed = RECORDS_SET, .key = 0, .more = 6},
     {{.deed = RECORDS_SET, .key = 1},
      {.deed = RECORDS_UNLINK, .key = 0, .filled = 1500},
      {.deed = RECORDS_SET, .key = 0}},
     3},
    {{.deed = RECORDS_SET, .key = 0},
     {{.deed = RECORDS_SET, .key = 0}, {.deed = RECORDS_LINK, .key = 0, .to = 5, .filled = 1500}},
     2},
};

static void a_change_of_several_keys_is_whole_or_not_at_all(void **state UNUSED)
{
    for (size_t i = 0; i < COUNT_OF(known); i++)
        for (size_t point = 0; point < COUNT_OF(points); point++)
            for (int passage = 1, is_over = 0; !is_over; passage++) {
                start_with(&known[i].first);
                memcpy(plan, known[i].deeds, sizeof known[i].deeds);
                planned = known[i].count;
                is_over = !try_plan(points[point], passage, false);
            }
}

/* In half of the plans a key that was used has a text on disk from then on: a record, or the memory of a
 * deletion. */
static void draw_plan(unsigned *seed)
{
    static const enum records_deed deeds[] = {RECORDS_SET,  RECORDS_RENAME, RECORDS_SET,   RECORDS_RENAME,
                                              RECORDS_LINK, RECORDS_UNLINK, RECORDS_DELETE};
    static const int filled[] = {0, 0, 0, 20, 1100, 1100};
    bool is_plain = rand_r(seed) % 2;
    int left = FILLED_MOST;
    planned = 1 + rand_r(seed) % PLAN;
    for (int i = 0; i < planned; i++) {
        int more = filled[(size_t)rand_r(seed) % COUNT_OF(filled)];
        plan[i] = (struct deed){.deed = deeds[(size_t)rand_r(seed) % (is_plain ? 2 : COUNT_OF(deeds))],
                                .key = rand_r(seed) % KEYS,
                                .to = rand_r(seed) % KEYS,
                                .is_immediate = !is_plain && rand_r(seed) % 2,
                                .filled = more < left ? more : 0};
        left -= plan[i].filled;
        if (plan[i].deed == RECORDS_SET && !is_plain && rand_r(seed) % 2)
            plan[i].more = 1u << rand_r(seed) % KEYS | 1u << rand_r(seed) % KEYS;
    }
}

static void any_plan_is_kept_as_a_model_says(void **state UNUSED)
{
    unsigned seed = 11;
    int deaths = 0;
    memset(&before, 0, sizeof before);
    for (int round = 0; round < 60; round++) {
        draw_plan(&seed);
        const char *point = points[(size_t)rand_r(&seed) % COUNT_OF(points)];
        int passage = 1 + rand_r(&seed) % 2;
        deaths += try_plan(point, passage, rand_r(&seed) % 4 == 0);
    }
    assert_true(deaths > 10);
}

/* --- what others change between two parts --- */

enum { MOVERS = 3, STATIONS = 4, MOVED_TOGETHER = 3 };

/* Of each mover, how often its record was moved, by changes that were acknowledged, and that were begun. */
struct moves {
    volatile int acknowledged[MOVERS], begun[MOVERS], filled;
};
static struct moves *moves;

static const char *station_of(int own, int moved, char name_r[16])
{
    snprintf(name_r, 16, "m%d.%d", own, moved % STATIONS);
    return name_r;
}

static void move_on(void *argument)
{
    int own = *(int *)argument;
    for (char from[16], to[16];;) {
        uint64_t number = 0;
        for (int i = 0; i < MOVED_TOGETHER; i++) {
            int moved = moves->begun[own]++;
            station_of(own, moved, from);
            station_of(own, moved + 1, to);
            DEMAND(RUN(.deed = RECORDS_RENAME, .key = bytes_of(from), .to = bytes_of(to),
                       .is_immediate = moved % 2, .may_overwrite = true) == RECORDS_OK);
            number = found.saving;
        }
        DEMAND(records_save(records, number));
        moves->acknowledged[own] = moves->begun[own];
    }
}

static void fill_on(void *argument UNUSED)
{
    struct model own = {.next_filler = 0};
    for (;;) {
        fill(&own, 1100, true);
        moves->filled++;
        records_save_rest(records);
    }
}

/* The record of each mover is under one key, at which it was at some moment after the last acknowledged move;
 * how often it was moved to there. */
static int find_mover(int own)
{
    int at = -1, count = 0;
    for (int i = 0; i < STATIONS; i++) {
        char name[16];
        if (!version_under(station_of(own, i, name)))
            continue;
        at = i;
        count++;
    }
    assert_int_equal(count, 1);
    for (int moved = moves->acknowledged[own]; moved <= moves->begun[own]; moved++)
        if (moved % STATIONS == at)
            return moved;
    fail_msg("m%d is at %d, after %d moves of %d", own, at, moves->acknowledged[own], moves->begun[own]);
    return 0;
}

static bool has_moved_enough(void)
{
    bool is_enough = moves->filled > 20;
    for (int i = 0; i < MOVERS; i++)
        is_enough = is_enough && moves->acknowledged[i] > 20;
    return is_enough;
}

static void a_moved_record_is_under_one_key(void **state UNUSED)
{
    unsigned seed = 5;
    moves = mapping_share(sizeof *moves);
    for (int i = 0; i < MOVERS; i++) {
        char name[16];
        keep_text(station_of(i, 0, name), "1");
    }
    for (int round = 0; round < 20 || !has_moved_enough(); round++) {
        pid_t pids[MOVERS + 1];
        pids[MOVERS] = child_start(fill_on, NULL);
        for (int i = 0; i < MOVERS; i++)
            pids[i] = child_start(move_on, &i);
        clock_sleep_ms(20 + rand_r(&seed) % 60 + round);
        for (int i = 0; i <= MOVERS; i++)
            child_kill(pids[i]);
        restart();
        for (int i = 0; i < MOVERS; i++)
            moves->begun[i] = moves->acknowledged[i] = find_mover(i);
    }
}

/* --- what is read at once --- */

/* By a change of the disk that had several parts. */
static void the_list_is_empty_then(void **state UNUSED)
{
    struct records_sums sums;
    struct model model = {.next_filler = 0};
    keep_text("k0", "1");
    fill(&model, 1500, true);
    assert_int_equal(RUN(.deed = RECORDS_RENAME, .key = BYTES("k0"), .to = BYTES("k1")), RECORDS_OK);
    records_sum(records, NO_BYTES, &sums);
    assert_true(sums.unsaved > 0);
    assert_true(records_save(records, found.saving));
    records_sum(records, NO_BYTES, &sums);
    assert_int_equal(sums.unsaved, 0);
    restart();
    expect("k1", "1");
}

/* After a deletion, too, which something further on may have to do with. */
static void a_part_is_bounded(void **state UNUSED)
{
    enum { COUNT = 100, BYTES_EACH = 200000, PART_MOST = 6 << 20 };
    static char large[BYTES_EACH];
    char key[16];
    memset(large, 'x', sizeof large);
    records_close(records);
    records = open_at(32 << 20);
    assert_true(bring(DISK_BYTES));
    keep_text("gone", "x");
    assert_int_equal(
        RUN(.deed = RECORDS_RENAME, .key = BYTES("gone"), .to = BYTES("there"), .is_immediate = true),
        RECORDS_OK);
    for (int i = 0; i < COUNT; i++) {
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_STRING,
                             .content = {large, sizeof large}, .is_persisted = true),
                         RECORDS_OK);
    }
    assert_int_equal(RUN(.deed = RECORDS_RENAME, .key = BYTES("there"), .to = BYTES("here")), RECORDS_OK);
    assert_true(records_save(records, found.saving));
    assert_in_range(records->texts.capacity, BYTES_EACH, PART_MOST);
    records_check(records);
    records_close(records);
    records = open_at(32 << 20);
    assert_true(bring(DISK_BYTES));
    expect("here", "x");
    expect("there", NULL);
    for (int i = 0; i < COUNT; i++) {
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(RUN(.deed = RECORDS_GET, .key = bytes_of(key)), RECORDS_OK);
        assert_true(bytes_equal(found.content, (struct bytes){large, sizeof large}));
    }
}

/* More than one part of what follows the last change of several keys is not one change of the disk. */
static void what_is_not_joined_is_saved_in_parts(void **state UNUSED)
{
    planned = 2;
    memset(plan, 0, sizeof plan);
    plan[0] = (struct deed){.deed = RECORDS_SET, .key = 0, .more = 2, .filled = 0};
    plan[1] = (struct deed){.deed = RECORDS_SET, .key = 2, .filled = 1500};
    memset(&before, 0, sizeof before);
    assert_true(try_plan("records-synced", 2, false));
    assert_int_equal(version_under("f0"), 1);
    assert_int_equal(version_under("k2"), 2);
    plan[0] = plan[1];
    plan[1] = (struct deed){.deed = RECORDS_RENAME, .key = 2, .to = 3};
    assert_false(try_plan("records-synced", 2, false)); /* there is no second one */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_disk, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_change_of_several_keys_is_whole_or_not_at_all),
        TEST(any_plan_is_kept_as_a_model_says),
        TEST(a_moved_record_is_under_one_key),
        TEST(the_list_is_empty_then),
        TEST(a_part_is_bounded),
        TEST(what_is_not_joined_is_saved_in_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
