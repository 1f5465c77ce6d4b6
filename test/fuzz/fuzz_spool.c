/* fuzz_spool: what may be in the files of a spool; the first byte chooses: the body of a record, a segment,
 * the text of what is acknowledged, a dead letter, or ranges that are acknowledged one after the other.  Sums
 * are made right where the second byte is odd, which bytes of a fuzzer never are.
 *
 * Besides not crashing: a body that was read, written, is read as the same; numbers rise, reading ends, and
 * what is put behind damage is read; what is acknowledged is what a set of the numbers has. */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/spool_crc.h"
#include "spool/spool_private.h"

const char fuzz_target[] = "spool";

enum { RECORDS = 40, ACKNOWLEDGED_MOST = 16, KINDS = 5, DEAD_HEAD = 72, DEAD_CRC_AT = 68, NAME_MOST = 80 };

static char folder[] = "/dev/shm/stampd-fuzz-XXXXXX";

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *place)
{
    (void)stat, (void)type, (void)place;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int put(struct stampd_spool *spool, uint64_t *sequence_r)
{
    struct stampd_spool_request request = STAMPD_SPOOL_REQUEST;
    request.ns = "lab";
    request.operation = "put";
    request.param = "{}";
    request.param_size = 2;
    return stampd_spool_put(spool, &request, sequence_r);
}

static struct stampd_spool *open_spool(void)
{
    struct stampd_spool *spool;
    int error = stampd_spool_open(folder, STAMPD_SPOOL_WRITTEN, &spool);
    assert(!error);
    return spool;
}

/* A new spool with so many records. */
static struct stampd_spool *make(uint64_t records)
{
    const struct stampd_spool_limits limits = {.segment_bytes = 512, .limit_bytes = 1 << 30};
    static bool is_made;
    if (!is_made && (!mkdtemp(folder) || atexit(remove_folder)))
        abort();
    is_made = true;
    remove_folder();
    int error = stampd_spool_create(folder, &limits);
    struct stampd_spool *spool = error ? NULL : open_spool();
    for (uint64_t i = 0; i < records; i++)
        error |= put(spool, NULL);
    assert(!error);
    return spool;
}

static void write_file(const char *name, const void *data, size_t size, off_t offset)
{
    char path[NAME_MOST];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool is_written = fd >= 0 && pwrite(fd, data, size, offset) == (ssize_t)size &&
                      !ftruncate(fd, offset + (off_t)size) && !close(fd);
    assert(is_written);
}

static bool is_same(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

static void read_body(const uint8_t *data, size_t size)
{
    struct stampd_spool_request request, again;
    if (spool_record_read_body(data, size, &request))
        return;
    size_t bytes = spool_record_measure(&request);
    unsigned char *record = malloc(spool_record_bytes(bytes));
    assert(record);
    spool_record_write(&request, record, bytes);
    int error = spool_record_read_body(record + SPOOL_HEAD_BYTES, bytes, &again);
    assert(!error && is_same(request.ns, again.ns) && is_same(request.operation, again.operation) &&
           is_same(request.resource, again.resource) && is_same(request.domain, again.domain) &&
           is_same(request.info, again.info) && is_same(request.traceparent, again.traceparent) &&
           is_same(request.tracestate, again.tracestate) && request.priority == again.priority &&
           request.start == again.start && request.is_strict == again.is_strict &&
           request.param_size == again.param_size);
    free(record);
}

/* All numbers from 1 on: they rise, and each is read or damaged. */
static uint64_t read_all(struct stampd_spool *spool)
{
    struct stampd_spool_record record = {0};
    uint64_t after = 0;
    int error;
    while ((error = stampd_spool_next(spool, after, &record)) == 0 || error == EBADMSG) {
        assert(record.sequence > after && record.first <= record.sequence);
        after = record.sequence;
    }
    assert(error == EAGAIN);
    return after;
}

static void fix_sums(unsigned char *bytes, size_t size, const unsigned char *series)
{
    for (size_t at = 0; at + SPOOL_HEAD_BYTES <= size; at += SPOOL_ALIGN) {
        unsigned char *head = bytes + at;
        size_t body = spool_record_read_u32(head + 4);
        if (memcmp(head, "SPR1", 4) || body > size - at - SPOOL_HEAD_BYTES)
            continue;
        spool_record_write_u32(head + 24, spool_crc(0, head + SPOOL_HEAD_BYTES, body));
        spool_record_place(head, series, spool_record_read_u64(head + 8),
                           (int64_t)spool_record_read_u64(head + 16));
    }
}

/* What follows the head of the last segment, after the start of the machine. */
static void read_segment(unsigned char *data, size_t size, bool is_right)
{
    struct stampd_spool *spool = make(2);
    uint64_t last, sequence;
    if (is_right)
        fix_sums(data, size, spool->id);
    stampd_spool_close(spool);
    write_file("00000000000000000001" SPOOL_SEGMENT_SUFFIX, data, size, SPOOL_SEGMENT_HEAD);
    write_file("board", "", 0, 0);
    spool = open_spool();
    last = read_all(spool);
    int error = put(spool, &sequence);
    assert(!error && sequence == last + 1);
    last = read_all(spool);
    assert(last == sequence);
    stampd_spool_close(spool);
}

static void read_acknowledged(const uint8_t *data, size_t size, bool is_right)
{
    struct stampd_spool *spool = make(3);
    char *text = malloc(size + 10);
    assert(text);
    memcpy(text, data, size);
    text[size] = 0;
    if (is_right)
        size += (size_t)sprintf(text + size, "%08x\n", spool_crc(0, text, size));
    write_file("acknowledged", text, size, 0);
    free(text);
    int error = spool_position_read(spool);
    assert(!error && spool->position.count <= SPOOL_RANGES_MOST);
    stampd_spool_close(spool);
}

static void read_dead(unsigned char *data, size_t size, bool is_right)
{
    struct stampd_spool *spool = make(0);
    struct stampd_spool_record record;
    const char *reason;
    if (is_right && size > DEAD_HEAD)
        spool_record_write_u32(data + DEAD_CRC_AT, spool_crc(spool_crc(0, data, DEAD_CRC_AT),
                                                             data + DEAD_HEAD, size - DEAD_HEAD));
    write_file(SPOOL_DEAD "/00000000000000000007", data, size, 0);
    int error = stampd_spool_next_dead(spool, 0, &record, &reason);
    assert(!error || error == EBADMSG);
    assert(error || (record.body_size < size && strlen(reason) < size));
    stampd_spool_close(spool);
}

/* Ranges: two bytes for the first number and one for how many. */
static void acknowledge(const uint8_t *data, size_t size)
{
    static bool is_done[RECORDS + 2];
    struct stampd_spool *spool = make(RECORDS);
    memset(is_done, 0, sizeof is_done);
    for (int i = 0; size >= 3 && i < ACKNOWLEDGED_MOST; i++, data += 3, size -= 3) {
        uint64_t first = 1 + (uint64_t)(data[0] | data[1] << 8) % RECORDS, last = first + data[2] % 32;
        const struct stampd_spool_range range = {first, last < RECORDS ? last : RECORDS};
        int error = stampd_spool_acknowledge(spool, &range, 1);
        assert(!error);
        memset(is_done + range.first, 1, range.last - range.first + 1);
    }
    struct stampd_spool_record record;
    uint64_t after = 0;
    int error;
    while ((error = stampd_spool_next(spool, after, &record)) == 0) {
        while (++after < record.sequence)
            assert(is_done[after]);
        assert(!is_done[after]);
    }
    assert(error == EAGAIN);
    while (++after <= RECORDS)
        assert(is_done[after]);
    stampd_spool_close(spool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    unsigned kind = data[0] % KINDS;
    bool is_right = data[1] & 1;
    unsigned char *copy = malloc(size);
    assert(copy);
    memcpy(copy, data + 2, size - 2);
    size -= 2;
    if (kind == 0)
        read_body(copy, size);
    else if (kind == 1)
        read_segment(copy, size, is_right);
    else if (kind == 2)
        read_acknowledged(copy, size, is_right);
    else if (kind == 3)
        read_dead(copy, size, is_right);
    else
        acknowledge(copy, size);
    free(copy);
    return 0;
}
