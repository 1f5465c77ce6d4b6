/* nginx_counts: a datagram socket with a path that changes hands by rename, so that there always is one. */
#include "serve/metrics/nginx_counts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/identity.h"
#include "base/log.h"
#include "base/memory.h"
#include "segment/counts/refusals.h"
#include "segment/public_answers.h"
#include "edge/local_socket.h"

enum {
    BATCH = 256,
    LINE_BYTES = 2400,
    KIND_MOST = 24,
    BUFFER_BYTES = 1 << 20,
    PROBLEM_BYTES = 400,
    SERVED_MOST = 1 << 30
};

struct nginx_counts {
    int fd;
};

static bool write_path(const struct settings *settings, char path_r[PATH_MAX])
{
    int size = snprintf(path_r, PATH_MAX, "%s/refused.sock", settings->run_directory);
    return size > 0 && size < PATH_MAX;
}

struct nginx_counts *nginx_counts_open(const struct settings *settings)
{
    char path[PATH_MAX];
    char problem[PROBLEM_BYTES] = "run_directory: the path is too long";
    int64_t group = identity_socket_group(settings);
    const bool has_group = group != IDENTITY_NO_GROUP;
    const struct local_socket_options options = {.type = SOCK_DGRAM,
                                                 .mode = has_group ? 0660 : 0600,
                                                 .group = has_group ? group : LOCAL_SOCKET_NO_GROUP,
                                                 .may_replace_living = true};
    int bytes = BUFFER_BYTES, fd;
    if (!write_path(settings, path) || !local_socket_open(path, &options, &fd, problem, sizeof problem)) {
        log_warning("cannot receive what nginx has refused: %s", problem);
        return NULL;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes); /* the larger the better */
    struct nginx_counts *counts = memory_grown(NULL, 1, sizeof *counts, "nginx counts");
    counts->fd = fd;
    return counts;
}

void nginx_counts_close(struct nginx_counts *counts)
{
    if (counts)
        close(counts->fd); /* the path stays: it may be the next relay's */
    free(counts);
}

void nginx_counts_remove(const struct settings *settings)
{
    char path[PATH_MAX];
    if (write_path(settings, path))
        (void)unlink(path);
}

int nginx_counts_descriptor(const struct nginx_counts *counts)
{
    return counts ? counts->fd : -1;
}

/* --- lines --- */

/* Up to the word, which is left out; false: it is not there. */
static bool cut_at(struct bytes *rest, const char *word, struct bytes *before_r)
{
    const char *at = rest->size ? memmem(rest->data, rest->size, word, strlen(word)) : NULL;
    if (!at)
        return false;
    *before_r = (struct bytes){rest->data, (size_t)(at - rest->data)};
    *rest = (struct bytes){at + strlen(word), rest->size - before_r->size - strlen(word)};
    return true;
}

/* What stands in quotation marks may be of the request. */
static size_t copy_unquoted(struct bytes words, char copy_r[NGINX_ERROR_WORDS + 1])
{
    size_t size = 0;
    bool is_quoted = false;
    for (size_t i = 0; i < words.size && size < NGINX_ERROR_WORDS; i++) {
        bool is_mark = words.data[i] == '"';
        if (!is_quoted || is_mark)
            copy_r[size++] = words.data[i];
        is_quoted ^= is_mark;
    }
    copy_r[size] = '\0';
    return size;
}

bool nginx_counts_read_error(struct bytes line, struct nginx_error *error_r)
{
    struct bytes before, level, words, client = NO_BYTES;
    if (!cut_at(&line, " nginx: ", &before) || !cut_at(&line, " [", &before) ||
        !cut_at(&line, "] ", &level) || !cut_at(&line, ": ", &before))
        return false;
    error_r->is_warning = bytes_equal(level, BYTES("warn"));
    if (line.size && *line.data == '*' && !cut_at(&line, " ", &before)) /* number of the connection */
        return false;
    if (!cut_at(&line, ", client: ", &words))
        words = line;
    else if (!cut_at(&line, ",", &client))
        client = line;
    copy_unquoted(words, error_r->words);
    bool is_address = client.size && client.size < sizeof error_r->client;
    for (size_t i = 0; is_address && i < client.size; i++)
        is_address = strchr("0123456789abcdef.:", client.data[i]) && client.data[i];
    snprintf(error_r->client, sizeof error_r->client, "%.*s", is_address ? (int)client.size : 1,
             is_address ? client.data : "-");
    return true;
}

static void log_error_of_nginx(const struct nginx_error *error)
{
    char kind[KIND_MOST + 1];
    snprintf(kind, sizeof kind, "%.*s", KIND_MOST, error->words);
    log_often(error->is_warning ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR, kind, "nginx: %s client=%s",
              error->words, error->client);
}

/* What the module of nginx reports each second (nginx/module). */
static bool count_served(struct bytes line, struct segment *segment)
{
    struct bytes word = bytes_cut(&line, ' ');
    int64_t count;
    if (!bytes_equal(word, BYTES("served")) || !bytes_to_i64(line, &count) || count < 0 ||
        count > SERVED_MOST)
        return false;
    public_answers_count_served(segment, (uint64_t)count);
    return true;
}

static void count_refusal(struct bytes line, struct segment *segment)
{
    const char *last = memrchr(line.data, ' ', line.size);
    int64_t status;
    if (last && bytes_to_i64((struct bytes){last + 1, (size_t)(line.data + line.size - last - 1)}, &status))
        refusals_count_nginx(segment, status);
}

void nginx_counts_receive(struct nginx_counts *counts, struct segment *segment)
{
    char line[LINE_BYTES];
    for (int i = 0; i < BATCH; i++) {
        ssize_t size = recv(counts->fd, line, sizeof line, 0);
        if (size < 0)
            break;
        struct nginx_error error;
        const struct bytes text = {line, (size_t)size};
        if (nginx_counts_read_error(text, &error))
            log_error_of_nginx(&error);
        else if (!count_served(text, segment))
            count_refusal(text, segment);
    }
}
