/* test_journal_children: children of a stamp-journal that do not answer or do not end, and what they have in
 * memory of keys that are no longer in the file. */
#include "journal_far_fixture.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/coding/hex.h"
#include "edge/crypto/crypto.h"
#include "journal/journal_child.h"
#include "journal/journal_reader.h"

/* --- a disk that does not answer --- */

/* Whoever waits is refused: with a reader, in the queue, and who comes while none answers. */
static void readers_that_do_not_answer_refuse(void **state UNUSED)
{
    enum { ALL = JOURNAL_READERS + 2 };
    int clients[ALL];
    struct peer_answer answer;
    write_config(IMPATIENT_S); /* for the daemon that reads: the one before it writes in its own time */
    prepare(ALL);
    int other = peer_enter(socket_path);
    for (int i = 0; i < ALL; i++)
        clients[i] = reading_client(far_key(i));
    for (int i = 0; i < JOURNAL_READERS; i++)
        await_writer();
    for (int i = 0; i < ALL; i++)
        peer_expect_error(clients[i], "NOT_READ");
    peer_send_get(other, far_key(0));
    peer_expect_error(other, "NOT_READ");
    peer_get(other, "near", "1");
    let_read(JOURNAL_READERS);
    for (int i = 0; i < ALL; i++) {
        do {
            peer_send_get(clients[i], far_key(i));
            assert_true(peer_receive(clients[i], &answer));
        } while (strcmp(answer.error, "NOT_READ") == 0);
        assert_string_equal(answer.value, content_of(far_key(i)));
        close(clients[i]);
    }
    close(other);
}

/* Reads this until the readers that do so were killed: the answer is an error. */
static void kill_readers(const char *key)
{
    int client = reading_client(key);
    for (int i = 0; i < 2; i++) {
        await_writer();
        assert_int_equal(kill(atomic_load(&shared->writer), SIGKILL), 0);
    }
    peer_expect_error(client, "NOT_READ");
    close(client);
}

/* The loop does not wait for them, and does not start others without end. */
static void readers_that_were_killed_and_do_not_end(void **state UNUSED)
{
    prepare(1);
    int other = peer_enter(socket_path);
    atomic_store(&shared->is_unending, true);
    for (int i = 0; i < JOURNAL_CHILDREN_KILLED_MOST / 2; i++) {
        kill_readers(far_key(0));
        peer_get(other, "near", "1");
    }
    int client = reading_client(far_key(0));
    peer_expect_error(client, "NOT_READ");
    peer_get(other, "near", "1");
    atomic_store(&shared->is_unending, false);
    let_read(0);
    peer_get(client, far_key(0), content_of(far_key(0)));
    close(client);
    close(other);
}

/* --- processes --- */

enum { NAME_MOST = 16 };

static bool is_child(const char *pid, const char *name)
{
    char path[64], text[256], own[NAME_MOST] = "";
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = isdigit((unsigned char)*pid) ? fopen(path, "r") : NULL;
    bool is = file && fgets(text, sizeof text, file) &&
              sscanf(text, "%*d (%15[^)]) %*c %d", own, &parent) == 2 && parent == daemon_pid &&
              strcmp(own, name) == 0;
    if (file)
        fclose(file);
    return is;
}

/* Of the daemon; 0: it has none of this name. */
static pid_t find_child(const char *name)
{
    pid_t pid = 0;
    DIR *folder = opendir("/proc");
    assert_non_null(folder);
    for (struct dirent *entry; !pid && (entry = readdir(folder));)
        pid = is_child(entry->d_name, name) ? atoi(entry->d_name) : 0;
    closedir(folder);
    return pid;
}

static pid_t await_child(const char *name)
{
    pid_t pid;
    int64_t end_ms = clock_monotonic_ms() + PEER_PATIENCE_S * 1000;
    while (!(pid = find_child(name))) {
        assert_true(clock_monotonic_ms() < end_ms);
        clock_sleep_ms(1);
    }
    return pid;
}

/* It has ended, and the daemon has taken its status. */
static void await_end(pid_t pid)
{
    int64_t end_ms = clock_monotonic_ms() + PEER_PATIENCE_S * 1000;
    while (kill(pid, 0) == 0) {
        assert_true(clock_monotonic_ms() < end_ms);
        clock_sleep_ms(1);
    }
    assert_int_equal(errno, ESRCH);
}

/* --- their memory --- */

enum { PIECE = 1 << 20, REGION_MOST = 256 << 20 };

static bool has_in(int memory, unsigned long from, unsigned long end, const char *text)
{
    static char piece[PIECE];
    size_t size = strlen(text);
    for (unsigned long at = from; at < end; at += PIECE - size) {
        size_t wanted = end - at < PIECE ? end - at : PIECE;
        ssize_t got = pread(memory, piece, wanted, (off_t)at);
        if (got > 0 && memmem(piece, (size_t)got, text, size))
            return true;
    }
    return false;
}

/* All that the process may write to, but for the large regions of sanitizers, which have no data of it. */
static bool has_in_memory(pid_t pid, const char *text)
{
    char path[64], line[600];
    unsigned long from, end;
    bool has = false;
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int memory = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "r");
    assert_true(memory >= 0 && maps);
    while (!has && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx rw", &from, &end) == 2 && strstr(line, " rw") && end - from <= REGION_MOST)
            has = has_in(memory, from, end, text);
    fclose(maps);
    close(memory);
    return has;
}

/* --- keys --- */

static char passing[2 * 32 + 1]; /* a key that the file has for a while; made after the daemon has begun */

/* The beginning of what a buffer has had may be overwritten. */
static const char *passing_end(void)
{
    return passing + sizeof passing / 2;
}

static void read_keys(const char *text)
{
    int idle = peer_enter(socket_path);
    write_file(keys_path, text);
    assert_int_equal(kill(daemon_pid, SIGHUP), 0);
    peer_expect_end(idle);
    close(peer_enter(socket_path)); /* it has done all that the signal requests */
}

static void read_passing_key(void)
{
    unsigned char random[sizeof passing / 2];
    char digest[CRYPTO_SHA256_HEX + 1], text[400];
    crypto_random(random, sizeof random);
    hex_write(random, sizeof random, passing);
    crypto_sha256_hex(bytes_of(passing), digest);
    snprintf(text, sizeof text, "%slab write %s\n", KEY_LINE, digest);
    read_keys(text);
}

static void revoked_keys_are_in_no_memory(void **state UNUSED)
{
    prepare(1);
    read_passing_key();
    int client = peer_enter_with(socket_path, passing);
    let_read(0);
    peer_set(client, "kept", "1", JOURNAL_PERSIST);
    peer_get(client, far_key(0), content_of(far_key(0)));
    pid_t saver = find_child("journal-saver"), reader = find_child("journal-reader");
    assert_true(saver && reader && has_in_memory(daemon_pid, passing_end()));
    assert_true(has_in_memory(saver, passing_end()) && has_in_memory(reader, passing_end()));
    read_keys(KEY_LINE);
    peer_expect_end(client);
    await_end(saver);
    await_end(reader);
    assert_false(has_in_memory(daemon_pid, passing_end()));
    client = peer_enter(socket_path);
    evict(far_key(0));
    peer_set(client, "kept", "2", JOURNAL_PERSIST);
    peer_get(client, far_key(0), content_of(far_key(0)));
    saver = find_child("journal-saver");
    reader = find_child("journal-reader");
    assert_true(saver && reader && !has_in_memory(saver, passing_end()) &&
                !has_in_memory(reader, passing_end()));
    close(client);
}

/* A child that is busy ends with its answer; what came meanwhile is for the next one.  One that began while
 * a connection with former keys was there ends with that. */
static void new_keys_replace_children_that_are_busy(void **state UNUSED)
{
    prepare(1);
    read_passing_key();
    int client = peer_enter_with(socket_path, passing);
    let_read(0);
    shut_gate();
    unsigned held = peer_send_set(client, "held", "1", JOURNAL_PERSIST);
    await_writer();
    pid_t saver = find_child("journal-saver");
    assert_int_equal(atomic_load(&shared->writer), saver);
    read_keys(KEY_LINE);
    assert_false(has_in_memory(daemon_pid, passing_end()));
    int other = reading_client(far_key(0)), next = peer_enter(socket_path);
    unsigned more = peer_send_set(next, "more", "2", JOURNAL_PERSIST);
    pid_t reader = await_child("journal-reader"); /* which opens the disk when the saver has ended */
    assert_int_equal(find_child("journal-saver"), saver);
    peer_expect_nothing(client);
    open_gate();
    peer_expect_answer(client, held, "");
    peer_expect_end(client);
    peer_expect_answer(next, more, "");
    expect_content(other, far_key(0));
    await_end(saver);
    await_end(reader);
    assert_true(find_child("journal-saver") != 0);
    close(other);
    close(next);
}

int main(void)
{
    give_up_root();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(readers_that_do_not_answer_refuse),
        TEST(readers_that_were_killed_and_do_not_end),
        TEST(revoked_keys_are_in_no_memory),
        TEST(new_keys_replace_children_that_are_busy),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
