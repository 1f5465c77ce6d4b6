/* journal_address: getaddrinfo, without names. */
#include "journal/journal_address.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"

bool journal_address_resolve(const char *text, struct addrinfo **found_r)
{
    char host[JOURNAL_ADDRESS_MOST];
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;
    bool is_bracketed = size > 2 && text[0] == '[' && text[size - 1] == ']';
    if (is_bracketed) {
        text++;
        size -= 2;
    }
    if (!size || size >= JOURNAL_ADDRESS_MOST || !colon[1] || (!is_bracketed && memchr(text, ':', size)))
        return false;
    memcpy(host, text, size);
    host[size] = 0;
    const struct addrinfo wanted = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                    .ai_family = AF_UNSPEC,
                                    .ai_socktype = SOCK_STREAM};
    return getaddrinfo(host, colon + 1, &wanted, found_r) == 0;
}

int journal_address_listen(const char *setting, const char *text, int backlog, char *problem,
                           size_t problem_size)
{
    struct addrinfo *found;
    const int on = 1;
    if (!journal_address_resolve(text, &found)) {
        snprintf(problem, problem_size, "%s: %s: an address in numbers, a colon and a port are expected",
                 setting, text);
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_done = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                   bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, backlog) == 0;
    if (!is_done)
        snprintf(problem, problem_size, "%s: %s: %m", setting, text);
    freeaddrinfo(found);
    if (is_done || fd < 0)
        return fd;
    close(fd);
    return -1;
}

bool journal_address_client(const struct sockaddr *address, socklen_t size, char text_r[JOURNAL_ADDRESS_MOST],
                            uint64_t *client_r)
{
    if (getnameinfo(address, size, text_r, JOURNAL_ADDRESS_MOST, NULL, 0, NI_NUMERICHOST))
        return false;
    text_r[strcspn(text_r, "%")] = 0; /* the zone of a link-local address */
    *client_r = address_client(bytes_of(text_r));
    return *client_r != 0;
}
