/* journal_shell: libstampd-journal over a Unix socket or over TLS. */
#include "control/journal_shell.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/coding/hex.h"
#include "base/secret.h"
#include "control/message.h"
#include "edge/crypto/tls.h"

enum { PROBLEM_BYTES = 600, HOST_MOST = 256 };

/* --- TLS --- */

struct shell_link {
    int fd;
    struct tls *tls;
};

static ssize_t size_of(enum tls_outcome outcome, size_t size)
{
    if (outcome == TLS_DONE)
        return (ssize_t)size;
    errno = outcome == TLS_ENDED ? ECONNRESET : EAGAIN;
    return -1;
}

static ssize_t send_sealed(void *context, const void *data, size_t size)
{
    struct shell_link *link = context;
    size_t sent;
    enum tls_outcome outcome = tls_send(link->tls, data, size, &sent);
    return size_of(outcome, sent);
}

static ssize_t receive_sealed(void *context, void *data, size_t most)
{
    struct shell_link *link = context;
    size_t size;
    enum tls_outcome outcome = tls_receive(link->tls, data, most, &size);
    return size_of(outcome, size);
}

static void close_sealed(void *context)
{
    struct shell_link *link = context;
    tls_destroy(link->tls);
    close(link->fd);
    free(link);
}

/* "HOST:PORT" or "[ADDRESS]:PORT". */
static bool journal_shell_split(const char *text, char *host, const char **port_r)
{
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;
    if (size > 2 && text[0] == '[' && text[size - 1] == ']') {
        text++;
        size -= 2;
    }
    if (!size || size >= HOST_MOST || !colon[1])
        return false;
    memcpy(host, text, size);
    host[size] = 0;
    *port_r = colon + 1;
    return true;
}

/* -1: reported. */
static int connect_to(const struct journal_shell *shell, const char *host, const char *port)
{
    const struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    const struct timeval timeout = {.tv_sec = shell->timeout_s};
    struct addrinfo *found;
    int error = getaddrinfo(host, port, &wanted, &found), fd = -1;
    if (error) {
        message_print("%s: %s", shell->connect, gai_strerror(error));
        return -1;
    }
    for (struct addrinfo *one = found; one && fd < 0; one = one->ai_next) {
        fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) ||
                        connect(fd, one->ai_addr, one->ai_addrlen) || fcntl(fd, F_SETFL, O_NONBLOCK))) {
            error = errno;
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    if (fd < 0)
        message_print("%s: %s", shell->connect, error == EINPROGRESS ? "no answer" : strerror(error));
    return fd;
}

static bool shake(const struct journal_shell *shell, const struct shell_link *link)
{
    for (enum tls_outcome outcome; (outcome = tls_shake(link->tls)) != TLS_DONE;) {
        struct pollfd one = {.fd = link->fd, .events = outcome == TLS_READS ? POLLIN : POLLOUT};
        if (outcome == TLS_ENDED || poll(&one, 1, (int)shell->timeout_s * 1000) <= 0)
            return message_refuse("%s: TLS: %s", shell->connect,
                                  outcome == TLS_ENDED ? tls_why(link->tls) : "no answer");
    }
    return true;
}

static int open_sealed(struct journal_shell *shell)
{
    struct tls_client *client;
    char host[HOST_MOST], problem[PROBLEM_BYTES];
    const char *port;
    if (!journal_shell_split(shell->connect, host, &port))
        return message_end(CONTROL_WRONG, "--connect %s: HOST:PORT is expected", shell->connect);
    if (!tls_client_create(&client, shell->ca, shell->is_insecure, problem, sizeof problem))
        return message_end(CONTROL_FAILED, "%s", problem);
    signal(SIGPIPE, SIG_IGN); /* OpenSSL writes to the socket */
    struct shell_link *link = calloc(1, sizeof *link);
    int fd = link ? connect_to(shell, host, port) : -1;
    if (fd < 0) {
        tls_client_destroy(client);
        free(link);
        return CONTROL_FAILED;
    }
    *link = (struct shell_link){fd, tls_create_client(client, fd, host)};
    tls_client_destroy(client);
    const struct stampd_journal_transport transport = {link, fd, send_sealed, receive_sealed, close_sealed};
    if (shake(shell, link) &&
        !stampd_journal_open_transport(&transport, (int)shell->timeout_s * 1000, &shell->journal))
        return CONTROL_DONE;
    close_sealed(link);
    return CONTROL_FAILED;
}

/* --- the connection --- */

static int open_plain(struct journal_shell *shell)
{
    char path[PATH_MAX];
    if (!shell->socket) {
        if (!control_load_settings(shell->control))
            return CONTROL_FAILED;
        snprintf(path, sizeof path, "%s/journal.sock", shell->control->settings.run_directory);
    }
    const char *socket_path = shell->socket ? shell->socket : path;
    int error = stampd_journal_open(socket_path, (int)shell->timeout_s * 1000, &shell->journal);
    if (error)
        message_print("%s: %s", socket_path, strerror(error));
    return error ? CONTROL_FAILED : CONTROL_DONE;
}

static int journal_shell_enter(struct journal_shell *shell, const char *command)
{
    struct secret key;
    char problem[PROBLEM_BYTES];
    if (!secret_read(&key, "--key-file", shell->key_file, problem, sizeof problem))
        return message_end(CONTROL_FAILED, "%s: %s", command, problem);
    int error = stampd_journal_enter(shell->journal, shell->ns, key.text);
    secret_erase(&key);
    if (error)
        message_print("%s: %s", command,
                      error == EACCES ? "KEY: the namespace has no such key" : strerror(error));
    return error ? CONTROL_FAILED : CONTROL_DONE;
}

int journal_shell_open(struct journal_shell *shell, const char *command, bool needs_key)
{
    if (shell->connect && shell->socket)
        return message_end(CONTROL_WRONG, "%s: either --socket or --connect is expected", command);
    if (!shell->ns != !shell->key_file || (needs_key && !shell->ns))
        return message_end(CONTROL_WRONG, "%s: --ns and --key-file are expected", command);
    int status = shell->connect ? open_sealed(shell) : open_plain(shell);
    if (status == CONTROL_DONE && shell->ns)
        status = journal_shell_enter(shell, command);
    if (status != CONTROL_DONE)
        journal_shell_close(shell);
    return status;
}

void journal_shell_close(struct journal_shell *shell)
{
    stampd_journal_close(shell->journal);
    shell->journal = NULL;
}

static struct bytes bytes_from(struct stampd_journal_text text)
{
    return (struct bytes){text.size ? text.data : "", text.size};
}

int journal_shell_run(struct journal_shell *shell, const char *command,
                      const struct stampd_journal_request *request, struct stampd_journal_answer *answer_r)
{
    int error = stampd_journal_run(shell->journal, request, answer_r);
    if (error)
        return message_end(CONTROL_FAILED, "%s: %s", command,
                           error == EINVAL ? "a key or a value is too long" : strerror(error));
    shell->stamp = stampd_journal_stamp(answer_r);
    if (!answer_r->error.size)
        return CONTROL_DONE;
    return message_end(CONTROL_FAILED, "%s: %s", command,
                       message_quote(shell->control->arena, bytes_from(answer_r->error)));
}

/* --- values --- */

static const char *const types[] = {"void", "buffer", "string", "integer", "float", "boolean"};

static const char *type_word(enum stampd_journal_type type)
{
    return (size_t)type < COUNT_OF(types) ? types[type] : "unknown";
}

/* As text, for people and as JSON; bytes are hexadecimal. */
static const char *value_text(struct arena *arena, const struct stampd_journal_record *record)
{
    struct bytes value = bytes_from(record->value);
    char *hex;
    switch (record->type) {
    case STAMPD_JOURNAL_VOID:
        return "null";
    case STAMPD_JOURNAL_STRING:
        return message_quote(arena, value);
    case STAMPD_JOURNAL_INTEGER:
        return arena_printf(arena, "%" PRId64, stampd_journal_read_integer(record->value));
    case STAMPD_JOURNAL_FLOAT:
        return arena_printf(arena, "%.17g", stampd_journal_read_float(record->value));
    case STAMPD_JOURNAL_BOOLEAN:
        return value.size && value.data[0] ? "true" : "false";
    default:
        hex = arena_alloc(arena, value.size * 2 + 1);
        hex[value.size * 2] = '\0';
        hex_write((const unsigned char *)value.data, value.size, hex);
        return arena_printf(arena, "\"%s\"", hex);
    }
}

void journal_shell_print(const struct journal_shell *shell, const struct stampd_journal_answer *answer,
                         const struct stampd_journal_record *record, bool has_value)
{
    struct arena *arena = shell->control->arena;
    struct record line = {0};
    const char *value = record && has_value ? value_text(arena, record) : NULL;
    if (!shell->is_json) {
        if (record)
            printf("%s  %s%s%s\n", message_quote(arena, bytes_from(record->key)), type_word(record->type),
                   value ? "  " : "", value ? value : "");
        return;
    }
    if (record) {
        record_add_text(&line, "key", bytes_from(record->key));
        record_add_word(&line, "type", type_word(record->type));
    }
    if (value)
        record_add_json(&line, "value", bytes_of(value));
    record_add_i64(&line, "timestamp_us", (int64_t)answer->timestamp_us);
    if (shell->stamp)
        record_add_word(&line, "stamp", arena_printf(arena, "%016" PRIx64, shell->stamp));
    if (answer->timeout_ms)
        record_add_i64(&line, "timeout_ms", (int64_t)answer->timeout_ms);
    if (answer->flags & STAMPD_JOURNAL_LOCKED)
        record_add_bool(&line, "locked", true);
    if (answer->flags & STAMPD_JOURNAL_WORKED_ON)
        record_add_bool(&line, "worked_on", true);
    record_print(&line);
}

static bool read_float(const char *text, double *value_r)
{
    char *end;
    errno = 0;
    *value_r = strtod(text, &end);
    return *text && !*end && errno == 0;
}

bool journal_shell_read_value(const char *command, const char *type, const char *text, unsigned char bytes[8],
                              struct stampd_journal_request *request)
{
    size_t index = 0;
    int64_t integer;
    double number;
    bool is_true = strcmp(text, "true") == 0, is_done = true;
    while (index < COUNT_OF(types) && strcmp(types[index], type) != 0)
        index++;
    request->type = (enum stampd_journal_type)index;
    request->value = (struct stampd_journal_text){bytes, 8};
    if (index == STAMPD_JOURNAL_INTEGER && bytes_to_i64(bytes_of(text), &integer)) {
        stampd_journal_write_integer(integer, bytes);
    } else if (index == STAMPD_JOURNAL_FLOAT && read_float(text, &number)) {
        stampd_journal_write_float(number, bytes);
    } else if (index == STAMPD_JOURNAL_BOOLEAN && (is_true || strcmp(text, "false") == 0)) {
        bytes[0] = is_true;
        request->value.size = 1;
    } else if (index == STAMPD_JOURNAL_VOID && !*text) {
        request->value.size = 0;
    } else {
        is_done = index == STAMPD_JOURNAL_STRING || index == STAMPD_JOURNAL_BUFFER;
        request->value = journal_shell_text(text);
    }
    if (!is_done)
        message_print("%s: \"%s\" is no value of type %s", command, text, type);
    return is_done;
}
