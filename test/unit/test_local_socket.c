/* local_socket: paths of Unix sockets, of the stale and of the living, and when they appear. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "edge/fcgi.h"
#include "edge/local_socket.h"
#include "fastcgi_client.h"

static char folder[] = "/tmp/test_local_socket.XXXXXX";
static char path[64];

static int make_folder(void **state UNUSED)
{
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/worker.sock", folder);
    return 0;
}

static int remove_folder(void **state UNUSED)
{
    return rmdir(folder);
}

static void socket_is_made_and_a_stale_one_replaced(void **state UNUSED)
{
    char problem[256] = "";
    int listener, second;
    struct stat status;
    assert_true(fcgi_listen(path, getegid(), &listener, problem, sizeof problem));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0660);
    assert_true(fcntl(listener, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(listener, F_GETFD) & FD_CLOEXEC);

    assert_false(fcgi_listen(path, FCGI_NO_GROUP, &second, problem, sizeof problem));
    assert_non_null(strstr(problem, "living process"));

    close(listener); /* its path stays */
    assert_true(fcgi_listen(path, FCGI_NO_GROUP, &second, problem, sizeof problem));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    close(second);
    unlink(path);
}

/* The names that appear in the folder of the socket, in their order: "+name" created, ">name" renamed to. */
static const char *appeared(int watch, char *text, size_t size)
{
    _Alignas(struct inotify_event) char room[4096];
    ssize_t got = read(watch, room, sizeof room);
    text[0] = '\0';
    for (char *at = room; got > 0 && at < room + got;) {
        const struct inotify_event *event = (const struct inotify_event *)at;
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s ", event->mask & IN_CREATE ? "+" : ">", event->name);
        at += sizeof *event + event->len;
    }
    return text;
}

/* Whoever finds the path can connect: a bound socket that does not listen yet refuses. */
static void socket_appears_when_it_listens(void **state UNUSED)
{
    char problem[256] = "", own[] = "/tmp/test_local_socket.XXXXXX", there[64], fresh[64], text[256];
    int listener, again, watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    assert_non_null(mkdtemp(own));
    snprintf(there, sizeof there, "%s/a.sock", own);
    snprintf(fresh, sizeof fresh, "%s/a.new", own);
    assert_true(watch >= 0 && inotify_add_watch(watch, own, IN_CREATE | IN_MOVED_TO) >= 0);
    assert_true(fcgi_listen(there, getegid(), &listener, problem, sizeof problem));
    assert_string_equal(appeared(watch, text, sizeof text), "+a.new >a.sock ");
    assert_true(local_socket_is_bound(listener, there));
    assert_false(local_socket_is_bound(listener, "/run/a.sock"));
    int client = client_connect(there);
    assert_true(client >= 0);
    close(client);
    close(listener);

    /* A process has ended between the two names; and its path stays when it is replaced. */
    assert_int_equal(rename(there, fresh), 0);
    assert_true(fcgi_listen(there, getegid(), &listener, problem, sizeof problem));
    assert_string_equal(appeared(watch, text, sizeof text), ">a.new +a.new >a.sock ");
    close(listener);
    assert_true(fcgi_listen(there, getegid(), &listener, problem, sizeof problem));
    assert_int_equal(access(fresh, F_OK), -1);

    /* A living process is at the other name: it is starting. */
    assert_int_equal(rename(there, fresh), 0);
    assert_false(fcgi_listen(there, getegid(), &again, problem, sizeof problem));
    assert_non_null(strstr(problem, "living process"));
    close(listener);
    close(watch);
    unlink(fresh);
    rmdir(own);
}

static void socket_never_replaces_what_is_no_socket(void **state UNUSED)
{
    char problem[512] = "", long_path[200];
    int listener, file = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(file >= 0);
    assert_false(fcgi_listen(path, FCGI_NO_GROUP, &listener, problem, sizeof problem));
    assert_non_null(strstr(problem, "no socket"));
    assert_int_equal(access(path, F_OK), 0);
    close(file);
    unlink(path);

    memset(long_path, 'x', sizeof long_path);
    long_path[sizeof long_path - 1] = '\0';
    assert_false(fcgi_listen(long_path, FCGI_NO_GROUP, &listener, problem, sizeof problem));
    assert_non_null(strstr(problem, "at most 103 bytes if it does not end in .sock"));
    memcpy(long_path + sizeof long_path - 6, ".sock", 6);
    assert_false(fcgi_listen(long_path, FCGI_NO_GROUP, &listener, problem, sizeof problem));
    assert_non_null(strstr(problem, "at most 107 bytes"));
    assert_null(strstr(problem, "if it"));
}

/* The longest path of its kind is accepted, and one more byte is refused with that number. */
static void check_longest(const char *end, size_t most, const char *words)
{
    char problem[256] = "", name[128];
    int listener;
    size_t begin = (size_t)snprintf(name, sizeof name, "%s/", folder), size = most - strlen(end);
    memset(name + begin, 'x', sizeof name - begin);
    snprintf(name + size, sizeof name - size, "%s", end);
    assert_int_equal(strlen(name), most);
    assert_true(fcgi_listen(name, FCGI_NO_GROUP, &listener, problem, sizeof problem));
    close(listener);
    assert_int_equal(unlink(name), 0);
    name[size] = 'x';
    snprintf(name + size + 1, sizeof name - size - 1, "%s", end);
    assert_false(fcgi_listen(name, FCGI_NO_GROUP, &listener, problem, sizeof problem));
    assert_non_null(strstr(problem, words));
}

static void the_longest_path_depends_on_its_end(void **state UNUSED)
{
    check_longest(".sock", 107, "at most 107 bytes");
    check_longest("", 103, "at most 103 bytes");
}

/* --- processes that start at once --- */

enum { STARTED = 10, REFUSED = 11, FAILED = 12 };

static int result_of(pid_t child)
{
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool has_open(pid_t child, const char *file)
{
    char name[64], target[128];
    bool is_open = false;
    snprintf(name, sizeof name, "/proc/%d/fd", (int)child);
    DIR *list = opendir(name);
    for (struct dirent *entry; list && !is_open && (entry = readdir(list));) {
        ssize_t size = readlinkat(dirfd(list), entry->d_name, target, sizeof target);
        is_open = size == (ssize_t)strlen(file) && memcmp(target, file, strlen(file)) == 0;
    }
    if (list)
        closedir(list);
    return is_open;
}

/* Opens the path as soon as `gate` is closed; holds the socket until `end` is. */
static _Noreturn void start(int gate, int report, int end)
{
    const struct local_socket_options options = {
        .type = SOCK_STREAM, .mode = 0600, .group = LOCAL_SOCKET_NO_GROUP};
    char problem[256] = "", byte;
    int fd;
    bool is_at_gate = read(gate, &byte, 1) == 0;
    bool is_started = is_at_gate && local_socket_open(path, &options, &fd, problem, sizeof problem);
    byte = is_started ? STARTED : strstr(problem, "living process") ? REFUSED : FAILED;
    if (write(report, &byte, 1) != 1 || read(end, &byte, 1) != 0)
        byte = FAILED;
    _exit(is_started ? STARTED : byte);
}

/* One that finds the folder locked waits, and then finds what the other has opened meanwhile. */
static void a_starter_waits_for_another_one(void **state UNUSED)
{
    int gate[2], report[2], end[2];
    char result;
    int turn = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(turn >= 0 && flock(turn, LOCK_EX) == 0);
    assert_true(pipe(gate) == 0 && pipe(report) == 0 && pipe(end) == 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(gate[1]);
        close(end[1]);
        close(turn);
        start(gate[0], report[1], end[0]);
    }
    close(gate[1]);
    close(report[1]);
    while (!has_open(child, folder)) /* a starter that does not wait opens the path instead */
        assert_int_equal(access(path, F_OK), -1);
    int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_true(bind(other, (const struct sockaddr *)&address, sizeof address) == 0 && listen(other, 1) == 0);
    close(turn);
    assert_int_equal(read(report[0], &result, 1), 1);
    assert_int_equal(result, REFUSED);
    close(end[1]);
    assert_int_equal(result_of(child), REFUSED);
    close(gate[0]);
    close(report[0]);
    close(end[0]);
    close(other);
    unlink(path);
}

/* Whatever the order: one has the path, and it is the one that can be reached there. */
static void one_of_many_starters_has_the_path(void **state UNUSED)
{
    enum { ROUNDS = 60, STARTERS = 4 };
    for (int round = 0; round < ROUNDS; round++) {
        int gate[2], report[2], end[2], started = 0, refused = 0;
        pid_t children[STARTERS];
        assert_true(pipe(gate) == 0 && pipe(report) == 0 && pipe(end) == 0);
        for (int i = 0; i < STARTERS; i++) {
            children[i] = fork();
            assert_true(children[i] >= 0);
            if (children[i] == 0) {
                close(gate[1]);
                close(end[1]);
                start(gate[0], report[1], end[0]);
            }
        }
        close(gate[1]);
        for (int i = 0; i < STARTERS; i++) {
            char result;
            assert_int_equal(read(report[0], &result, 1), 1);
            started += result == STARTED;
            refused += result == REFUSED;
        }
        int client = client_connect(path);
        assert_true(client >= 0);
        close(client);
        close(end[1]);
        for (int i = 0; i < STARTERS; i++)
            assert_int_not_equal(result_of(children[i]), -1);
        assert_int_equal(started, 1);
        assert_int_equal(refused, STARTERS - 1);
        close(gate[0]);
        close(report[0]);
        close(report[1]);
        close(end[0]);
        unlink(path);
    }
}

/* The successor has the path before its predecessor has ended; that one's socket stays readable. */
static void a_path_changes_hands(void **state UNUSED)
{
    const struct local_socket_options options = {
        .type = SOCK_DGRAM, .mode = 0640, .group = LOCAL_SOCKET_NO_GROUP, .may_replace_living = true};
    char problem[256] = "";
    int first, second;
    struct stat before, after;
    assert_true(local_socket_open(path, &options, &first, problem, sizeof problem));
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(before.st_mode & 0777, 0640);
    assert_true(local_socket_open(path, &options, &second, problem, sizeof problem));
    assert_int_equal(stat(path, &after), 0);
    assert_int_not_equal(before.st_ino, after.st_ino);
    assert_true(local_socket_is_bound(first, path) && local_socket_is_bound(second, path));

    const struct local_socket_options careful = {
        .type = SOCK_DGRAM, .mode = 0640, .group = LOCAL_SOCKET_NO_GROUP};
    assert_false(local_socket_open(path, &careful, &first, problem, sizeof problem));
    assert_non_null(strstr(problem, "living process"));
    close(first);
    close(second);
    assert_true(local_socket_open(path, &careful, &first, problem, sizeof problem));
    close(first);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(socket_is_made_and_a_stale_one_replaced),
        cmocka_unit_test(socket_appears_when_it_listens),
        cmocka_unit_test(socket_never_replaces_what_is_no_socket),
        cmocka_unit_test(the_longest_path_depends_on_its_end),
        cmocka_unit_test(a_path_changes_hands),
        cmocka_unit_test(a_starter_waits_for_another_one),
        cmocka_unit_test(one_of_many_starters_has_the_path),
    };
    return cmocka_run_group_tests_name("local_socket", tests, make_folder, remove_folder);
}
