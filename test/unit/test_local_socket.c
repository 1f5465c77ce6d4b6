/* local_socket: paths of Unix sockets, of the stale and of the living, and when they appear. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
    char problem[256] = "", long_path[200];
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
    assert_non_null(strstr(problem, "107 bytes"));
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
        cmocka_unit_test(a_path_changes_hands),
    };
    return cmocka_run_group_tests_name("local_socket", tests, make_folder, remove_folder);
}
