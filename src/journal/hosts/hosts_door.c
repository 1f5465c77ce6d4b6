/* hosts_door: each command is run as those of the protocols are: again with each answer of the hosts. */
#include "journal/hosts/hosts_door.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "edge/fcgi.h"
#include "journal/hosts/hosts_run.h"
#include "records/records_road.h"
#include "records/records_state.h"

enum { READ_BYTES = 65536, KEPT_BYTES = 65536, AGAIN_MS = 10, TRIES_MOST = 100 };

struct door_guest {
    struct hosts_door *door;
    int fd;
    struct watch *watch;
    struct events_timer *again;
    struct builder in, out;
    size_t sent;
    struct hosts_memo memo;
    int tries; /* while the state of the namespace is being read again */
    bool is_asking;
};

struct hosts_door {
    struct events *events;
    const struct settings *settings;
    struct records *records;
    struct hosts *hosts;
    int listener;
    struct watch *arrivals;
    struct door_guest *guests[HOSTS_DOOR_MOST];
    size_t count;
};

static void end_guest(struct door_guest *guest)
{
    struct hosts_door *door = guest->door;
    size_t place = 0;
    while (door->guests[place] != guest)
        place++;
    door->guests[place] = door->guests[--door->count];
    hosts_memo_forget(door->hosts, &guest->memo);
    events_watch_destroy(guest->watch);
    events_timer_destroy(guest->again);
    close(guest->fd);
    builder_free(&guest->in);
    builder_free(&guest->out);
    free(guest);
}

/* False: it is answered later. */
static bool run_command(struct door_guest *guest, const struct records_road_command *road,
                        enum records_outcome *outcome_r, struct records_found *found_r)
{
    const struct hosts_door *door = guest->door;
    struct records_answer answer;
    enum records_verdict verdict = records_state_admit(door->records, road->ns, false, false,
                                                       door->settings->record_state_s * 1000, &answer);
    *found_r = (struct records_found){0};
    if (verdict == RECORDS_IS_MOVED && guest->tries++ < TRIES_MOST) {
        events_timer_start(guest->again, AGAIN_MS);
        return false;
    }
    guest->tries = 0;
    if (verdict || !answer.is_spread) { /* the caller has seen another state than this process */
        *outcome_r = RECORDS_BUSY;
        return true;
    }
    const struct hosts_space space = {road->ns, answer.made, answer.is_encrypted};
    hosts_memo_rewind(&guest->memo);
    guest->is_asking = !hosts_run(door->hosts, &guest->memo, &space, &road->command, outcome_r, found_r);
    return !guest->is_asking;
}

static void send_answer(struct door_guest *guest)
{
    while (guest->sent < guest->out.size) {
        ssize_t size = send(guest->fd, guest->out.data + guest->sent, guest->out.size - guest->sent,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (size <= 0 && (errno == EAGAIN || errno == EINTR)) {
            events_watch_set(guest->watch, guest->fd, true);
            return;
        }
        if (size <= 0) {
            end_guest(guest);
            return;
        }
        guest->sent += (size_t)size;
    }
    builder_clear(&guest->out, KEPT_BYTES);
    guest->sent = 0;
    events_watch_set(guest->watch, guest->fd, false);
}

/* Runs the command that is whole. */
static void go_on(struct door_guest *guest)
{
    struct records_road_command road;
    enum records_outcome outcome;
    struct records_found found;
    size_t used;
    enum records_road_reading reading = records_road_read(builder_bytes(&guest->in), &road, &used);
    if (reading == RECORDS_ROAD_PARTIAL)
        return;
    if (reading == RECORDS_ROAD_MALFORMED || used != guest->in.size) {
        log_often(LOG_LEVEL_WARNING, "door",
                  "a program of this host is of another release, and is refused: restart it");
        end_guest(guest);
        return;
    }
    if (!run_command(guest, &road, &outcome, &found))
        return;
    records_road_write_answer(&guest->out, outcome, &found);
    hosts_memo_forget(guest->door->hosts, &guest->memo);
    builder_clear(&guest->in, KEPT_BYTES);
    send_answer(guest);
}

static void on_door_again(void *context)
{
    go_on(context);
}

static void on_door_answer(void *context)
{
    struct door_guest *guest = context;
    guest->is_asking = false;
    go_on(guest);
}

/* While a command is under way, only the end of its caller is to be noticed. */
static void on_guest(void *context)
{
    struct door_guest *guest = context;
    if (guest->sent < guest->out.size) {
        send_answer(guest);
        return;
    }
    char *room = builder_reserve(&guest->in, READ_BYTES);
    ssize_t size = recv(guest->fd, room, READ_BYTES, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size <= 0 || guest->is_asking || guest->tries) {
        end_guest(guest);
        return;
    }
    guest->in.size += (size_t)size;
    go_on(guest);
}

static bool is_let_in(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static void on_door_arrival(void *context)
{
    struct hosts_door *door = context;
    int fd = accept4(door->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (door->count == HOSTS_DOOR_MOST || !is_let_in(fd)) {
        log_often(LOG_LEVEL_WARNING, "door", "a program of this host is refused: %s",
                  door->count == HOSTS_DOOR_MOST ? "there are too many" : "it runs as another user");
        close(fd);
        return;
    }
    struct door_guest *guest = memory_zeroed(1, sizeof *guest, "accepting a program of this host");
    guest->door = door;
    guest->fd = fd;
    guest->memo.done = on_door_answer;
    guest->memo.context = guest;
    guest->watch = events_watch_create(door->events, on_guest, guest);
    guest->again = events_timer_create(door->events, on_door_again, guest);
    door->guests[door->count++] = guest;
    events_watch_set(guest->watch, fd, false);
}

bool hosts_door_open(struct hosts_door **door_r, struct events *events, const struct settings *settings,
                     struct records *records, struct hosts *hosts, const char *path, char *problem,
                     size_t problem_size)
{
    *door_r = NULL;
    if (!hosts)
        return true;
    struct hosts_door *door = memory_zeroed(1, sizeof *door, "listening for programs of this host");
    *door_r = door;
    *door = (struct hosts_door){
        .events = events, .settings = settings, .records = records, .hosts = hosts, .listener = -1};
    if (!fcgi_listen(path, FCGI_NO_GROUP, &door->listener, problem, problem_size))
        return false;
    if (fcntl(door->listener, F_SETFL, O_NONBLOCK) != 0) {
        snprintf(problem, problem_size, "%s: %s", path, strerror(errno));
        return false;
    }
    door->arrivals = events_watch_create(events, on_door_arrival, door);
    events_watch_set(door->arrivals, door->listener, false);
    return true;
}

void hosts_door_close(struct hosts_door *door)
{
    if (!door)
        return;
    while (door->count)
        end_guest(door->guests[door->count - 1]);
    events_watch_destroy(door->arrivals);
    if (door->listener >= 0)
        close(door->listener);
    free(door);
}
