/* journal_address: getaddrinfo, without names. */
#include "journal/journal_address.h"

#include <string.h>
#include <sys/socket.h>

enum { HOST_MOST = 64 };

bool journal_address_resolve(const char *text, struct addrinfo **found_r)
{
    char host[HOST_MOST];
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;
    bool is_bracketed = size > 2 && text[0] == '[' && text[size - 1] == ']';
    if (is_bracketed) {
        text++;
        size -= 2;
    }
    if (!size || size >= HOST_MOST || !colon[1] || (!is_bracketed && memchr(text, ':', size)))
        return false;
    memcpy(host, text, size);
    host[size] = 0;
    const struct addrinfo wanted = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                    .ai_family = AF_UNSPEC,
                                    .ai_socktype = SOCK_STREAM};
    return getaddrinfo(host, colon + 1, &wanted, found_r) == 0;
}
