/* A tiny FastCGI client for tests. */
#include "fastcgi_client.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BEGIN_REQUEST = 1, END_REQUEST = 3, PARAMS = 4, STDIN = 5, STDOUT = 6, RECORD_BYTES = 32768 };

int client_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert(strlen(path) < sizeof address.sun_path);
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address)) {
        close(fd);
        return -1;
    }
    return fd;
}

void client_add_record(struct builder *out, int type, struct bytes content)
{
    assert(content.size <= 65535);
    unsigned char padding = (unsigned char)(-content.size & 7);
    unsigned char header[8] = {1,
                               (unsigned char)type,
                               0,
                               1,
                               (unsigned char)(content.size >> 8),
                               (unsigned char)content.size,
                               padding,
                               0};
    builder_add(out, header, sizeof header);
    builder_add_bytes(out, content);
    builder_add(out, "\0\0\0\0\0\0\0", padding);
}

static void add_size(struct builder *out, size_t size)
{
    unsigned char bytes[4] = {(unsigned char)(size >> 24 | 0x80), (unsigned char)(size >> 16),
                              (unsigned char)(size >> 8), (unsigned char)size};
    if (size < 128)
        builder_add(out, &bytes[3], 1);
    else
        builder_add(out, bytes, 4);
}

void client_add_head(struct builder *out, bool keep, const struct client_pair *pairs)
{
    const char begin[8] = {0, 1, keep, 0, 0, 0, 0, 0};
    client_add_record(out, BEGIN_REQUEST, (struct bytes){begin, sizeof begin});
    struct builder params = {0};
    for (; pairs->name; pairs++) {
        add_size(&params, strlen(pairs->name));
        add_size(&params, strlen(pairs->value));
        builder_add_bytes(&params, bytes_of(pairs->name));
        builder_add_bytes(&params, bytes_of(pairs->value));
    }
    client_add_record(out, PARAMS, builder_bytes(&params));
    client_add_record(out, PARAMS, BYTES(""));
    builder_free(&params);
}

void client_add_request(struct builder *out, bool keep, const struct client_pair *pairs, struct bytes body)
{
    client_add_head(out, keep, pairs);
    while (body.size) {
        size_t size = body.size < RECORD_BYTES ? body.size : RECORD_BYTES;
        client_add_record(out, STDIN, (struct bytes){body.data, size});
        body = (struct bytes){body.data + size, body.size - size};
    }
    client_add_record(out, STDIN, BYTES(""));
}

bool client_write(int fd, struct bytes data)
{
    while (data.size) {
        ssize_t wrote = send(fd, data.data, data.size, MSG_NOSIGNAL);
        if (wrote <= 0)
            return false;
        data = (struct bytes){data.data + wrote, data.size - (size_t)wrote};
    }
    return true;
}

static bool read_whole(int fd, char *buffer, size_t size)
{
    while (size) {
        ssize_t got = read(fd, buffer, size);
        if (got <= 0)
            return false;
        buffer += got;
        size -= (size_t)got;
    }
    return true;
}

bool client_read_answer(int fd, struct builder *answer)
{
    for (;;) {
        unsigned char header[8];
        if (!read_whole(fd, (char *)header, sizeof header) || header[0] != 1)
            return false;
        size_t size = (size_t)header[4] << 8 | header[5];
        char waste[256];
        char *room = builder_reserve(answer, size + 1);
        if (!read_whole(fd, room, size) || !read_whole(fd, waste, header[6]))
            return false;
        if (header[1] == STDOUT)
            answer->size += size;
        if (header[1] == END_REQUEST)
            return size == 8 && room[4] == 0;
    }
}
