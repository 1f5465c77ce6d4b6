/* records_load: sends requests over many connections to a Unix socket and counts the answers, whatever the
 * protocol is: all requests have one size, and all answers one size too.
 *
 *     records_load SOCKET GREETING GREETED REQUESTS REQUEST ANSWER CONNECTIONS DEPTH SECONDS
 *
 * GREETING and REQUESTS are files: what each connection sends first, answered by GREETED bytes, and the
 * requests, each of REQUEST bytes, which the connections send in turn.  An answer has ANSWER bytes.  A
 * connection sends DEPTH requests at once, and again when all of them are answered.  Prints one line of JSON:
 * answers in a second, the median and the 99th percentile of such a round in microseconds. */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MOST = 1000, BUCKETS = 1000000 /* of a microsecond */ };

struct link {
    size_t expected; /* bytes of answers to come */
    int64_t since_us;
};

static struct link links[CONNECTIONS_MOST];
static struct pollfd polled[CONNECTIONS_MOST];
static uint32_t rounds[BUCKETS];
static char *requests;
static size_t requests_size, next_request;

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static char *read_file(const char *path, size_t *size_r)
{
    FILE *file = fopen(path, "r");
    if (!file || fseek(file, 0, SEEK_END))
        fail(path);
    *size_r = (size_t)ftell(file);
    char *text = malloc(*size_r + 1);
    rewind(file);
    if (!text || fread(text, 1, *size_r, file) != *size_r)
        fail(path);
    fclose(file);
    return text;
}

/* What is outstanding is far below what a socket holds, so this does not wait for an answer. */
static void send_all(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent <= 0)
            fail("send");
        data += sent;
        size -= (size_t)sent;
    }
}

static size_t receive(int fd)
{
    static char room[1 << 16];
    ssize_t size = recv(fd, room, sizeof room, 0);
    if (size <= 0)
        fail("the server has ended the connection");
    return (size_t)size;
}

static int open_link(const char *path, const char *greeting, size_t greeting_size, size_t greeted)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || strlen(path) >= sizeof address.sun_path)
        fail("socket");
    memcpy(address.sun_path, path, strlen(path));
    if (connect(fd, (struct sockaddr *)&address, sizeof address))
        fail(path);
    send_all(fd, greeting, greeting_size);
    while (greeted) {
        size_t size = receive(fd);
        if (size > greeted)
            fail("the greeting has another answer");
        greeted -= size;
    }
    return fd;
}

static void send_round(int position, size_t request, size_t answer, size_t depth)
{
    if (next_request + request * depth > requests_size)
        next_request = 0;
    links[position] = (struct link){answer * depth, now_us()};
    send_all(polled[position].fd, requests + next_request, request * depth);
    next_request += request * depth;
}

/* Has the round of the connection ended? */
static bool take_answers(int position)
{
    struct link *link = &links[position];
    size_t size = receive(polled[position].fd);
    if (size > link->expected) {
        fprintf(stderr, "an answer has another size\n");
        exit(1);
    }
    link->expected -= size;
    if (link->expected)
        return false;
    int64_t took_us = now_us() - link->since_us;
    rounds[took_us < BUCKETS ? took_us : BUCKETS - 1]++;
    return true;
}

static int percentile(uint64_t all, int percent)
{
    uint64_t seen = 0;
    int bucket = 0;
    while (bucket < BUCKETS - 1 && (seen += rounds[bucket]) * 100 < all * (uint64_t)percent)
        bucket++;
    return bucket;
}

int main(int argc, char **argv)
{
    if (argc != 10) {
        fprintf(stderr,
                "usage: records_load SOCKET GREETING GREETED REQUESTS REQUEST ANSWER CONNECTIONS DEPTH "
                "SECONDS\n");
        return 2;
    }
    size_t greeting_size, greeted = strtoul(argv[3], NULL, 10), request = strtoul(argv[5], NULL, 10);
    size_t answer = strtoul(argv[6], NULL, 10), depth = strtoul(argv[8], NULL, 10);
    int connections = atoi(argv[7]);
    char *greeting = read_file(argv[2], &greeting_size);
    requests = read_file(argv[4], &requests_size);
    if (connections < 1 || connections > CONNECTIONS_MOST || !request || !answer || !depth ||
        requests_size < request * depth)
        return 2;
    for (int i = 0; i < connections; i++)
        polled[i] =
            (struct pollfd){.fd = open_link(argv[1], greeting, greeting_size, greeted), .events = POLLIN};
    int64_t begin_us = now_us(), end_us = begin_us + (int64_t)(strtod(argv[9], NULL) * 1e6);
    uint64_t all = 0;
    for (int i = 0; i < connections; i++)
        send_round(i, request, answer, depth);
    while (now_us() < end_us) {
        if (poll(polled, (nfds_t)connections, 1000) <= 0)
            fail("no answer for a second");
        for (int i = 0; i < connections; i++)
            if (polled[i].revents && take_answers(i)) {
                all++;
                send_round(i, request, answer, depth);
            }
    }
    double seconds = (double)(now_us() - begin_us) / 1e6;
    printf("{\"per_second\": %.0f, \"p50_us\": %d, \"p99_us\": %d}\n", (double)all * (double)depth / seconds,
           percentile(all, 50), percentile(all, 99));
    free(greeting);
    free(requests);
    return 0;
}
