/* fuzz_journal: what a client of stamp-journal sends: messages, one after the other, as a connection runs
 * them that has shown its key.  Besides not crashing: a message that is whole stays whole with more bytes
 * behind it, is partial with fewer, and the memory of the records fits together. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "journal/journal_run.h"

const char fuzz_target[] = "journal";

enum { VALUE_MOST = 4096, MEMORY_BYTES = 1 << 20 };

#define KEY_LINE "lab write 2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683\n" /* "key" */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void open_session(struct journal_session *session, struct settings *settings)
{
    char folder[] = "/tmp/stampd-fuzz-XXXXXX", path[64], problem[300] = "";
    struct journal_keys *keys = NULL;
    bool is_made = mkdtemp(folder) != NULL;
    assert(is_made);
    snprintf(path, sizeof path, "%s/keys", folder);
    write_file(path, KEY_LINE);
    bool has_keys = journal_keys_load(&keys, path, problem, sizeof problem);
    unlink(path);
    snprintf(path, sizeof path, "%s/records", folder);
    bool has_records = records_open(&session->records, path, MEMORY_BYTES, 60, problem, sizeof problem);
    unlink(path);
    rmdir(folder);
    assert(has_keys && has_records);
    settings->limit_content_bytes = VALUE_MOST;
    settings->dhop_future_ms = 5000;
    session->settings = settings;
    session->keys = keys;
    memcpy(session->owner, "fuzz", 5);
    bool is_known = journal_keys_enter(keys, BYTES("lab"), BYTES("key"), &session->caller);
    assert(is_known);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct journal_session session;
    static struct settings settings;
    static struct builder out;
    struct bytes rest = {(const char *)data, size};
    struct journal_request request, shorter;
    size_t used, other;
    if (!session.records)
        open_session(&session, &settings);
    while (rest.size && journal_message_read(rest, VALUE_MOST, &request, &used) == JOURNAL_WHOLE) {
        assert(used >= JOURNAL_FIXED_BYTES && used <= rest.size);
        enum journal_reading reading =
            journal_message_read((struct bytes){rest.data, used - 1}, VALUE_MOST, &shorter, &other);
        assert(reading == JOURNAL_PARTIAL);
        if (request.function != JOURNAL_AUTH && journal_run(&session, &request, &out) == JOURNAL_CLOSE)
            break;
        rest.data += used;
        rest.size -= used;
    }
    builder_clear(&out, 1 << 20);
    records_check(session.records);
    return 0;
}
