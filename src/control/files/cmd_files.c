/* cmd_files: `stampctl files check, copy, fetch, place, verify`: the files of attachments, and their copies
 * in an object store, as <prefix><database>/<digest>.
 * Those of an encrypted namespace are copied as they are stored: `digest` is the name of the file then,
 * `size` its size there. */
#include "control/control.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/coding/hex.h"
#include "control/files/files_place.h"
#include "control/files/stored_files.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "blob/blob_check.h"
#include "edge/crypto/crypto.h"
#include "blob/object_stores.h"

enum { TIMEOUT_S = 60, TIMEOUT_MOST_S = 3600, CHECK_BYTES = 64, RANDOM_BYTES = 16 };
enum { NAME_BYTES = 160 };

struct files_run {
    struct files_listing walk;
    struct blob_store *blobs;    /* into which files are fetched */
    struct stored_files *stored; /* from which they are read */
    struct object_store *store;  /* NULL: none */
    const char *store_name;
    int64_t done, done_bytes, skipped, wrong;
    struct sealed_file_keys keys; /* of the namespace; none: it is not encrypted */
};

/* --- one file --- */

static void name_object(const struct files_run *run, const struct files_entry *entry, char name_r[NAME_BYTES])
{
    snprintf(name_r, NAME_BYTES, "%s/%s", run->walk.target.conf->database, entry->sha);
    char *cell = strchr(name_r, '@'); /* which an address would have in another form */
    if (cell)
        *cell = '.';
}

static bool report_store(const struct files_run *run, const char *name)
{
    return message_refuse("%s: %s: %s", run->store_name, name, object_store_problem(run->store));
}

/* Counts the file; the command continues with the others. */
static bool report_wrong(struct files_run *run, const struct files_entry *entry, const char *where,
                         const char *problem)
{
    progress_clear(&run->walk.progress);
    message_print("%s: %s: %s", where, entry->sha, problem);
    run->wrong++;
    return true;
}

/* A file that no document refers to any more may be missing. */
static bool report_missing(struct files_run *run, const struct files_entry *entry, const char *where)
{
    bool is_used;
    return files_walk_is_used(&run->walk, entry, &is_used) &&
           (!is_used || report_wrong(run, entry, where, "missing or truncated"));
}

static bool measure_local(struct files_run *run, const struct files_entry *entry, int64_t *size_r)
{
    return stored_files_measure_name(run->stored, &entry->digest, size_r) == FAULT_NONE;
}

static struct blob_check *begin_check(const struct files_run *run, const struct files_entry *entry)
{
    return blob_check_begin(&run->keys, &entry->digest, entry->size);
}

static bool report_bytes(struct files_run *run, const struct files_entry *entry, const char *where,
                         enum sealed_file_state state)
{
    return report_wrong(run, entry, where,
                        state == SEALED_FILE_UNKNOWN ? "it is under a data key that is not there"
                        : run->keys.count            ? "the file was altered or cut off"
                                                     : "the bytes do not match the digest");
}

/* --- copy --- */

/* The bytes are sent to the store and checked in one pass. */
struct copying {
    struct object_upload *upload;
    struct blob_check *check;
    bool is_taken;
};

static bool copy_piece(void *context, struct bytes piece)
{
    struct copying *copying = context;
    blob_check_add(copying->check, piece);
    copying->is_taken = object_store_write(copying->upload, piece);
    return copying->is_taken;
}

/* A damaged file is not copied. */
static bool upload(struct files_run *run, const struct files_entry *entry, const char *name)
{
    struct copying copying = {object_store_begin(run->store, name, entry->size), begin_check(run, entry),
                              true};
    enum fault fault = stored_files_read_bytes(run->stored, &entry->digest, copy_piece, &copying);
    enum sealed_file_state state = blob_check_end(copying.check, NULL);
    if (!fault && copying.is_taken && state == SEALED_FILE_FINE) {
        if (!object_store_finish(copying.upload))
            return report_store(run, name);
        run->done++;
        run->done_bytes += entry->size;
        return true;
    }
    object_store_abandon(copying.upload);
    if (!fault && !copying.is_taken)
        return report_store(run, name);
    return fault == FAULT_NFILE ? report_missing(run, entry, "copy")
           : fault              ? false
                                : report_bytes(run, entry, "copy", state);
}

static bool keep_header(void *context, struct bytes piece)
{
    if (piece.size == SEALED_FILE_HEADER)
        memcpy(context, piece.data, SEALED_FILE_HEADER);
    return true;
}

/* Of an object of the right size: a file that was encrypted again has the size that it had, and another
 * header. */
static bool is_same_file(struct files_run *run, const struct files_entry *entry, const char *name,
                         bool *is_same_r)
{
    unsigned char here[SEALED_FILE_HEADER], there[SEALED_FILE_HEADER] = {0};
    *is_same_r = true;
    if (!run->keys.count)
        return true;
    if (!object_store_read_part(run->store, name, 0, sizeof there, sizeof there, keep_header, there))
        return report_store(run, name);
    enum fault fault = stored_files_read_header(run->stored, &entry->digest, here);
    *is_same_r = !fault && memcmp(here, there, sizeof here) == 0;
    return !fault || fault == FAULT_NFILE; /* the copy reports a file that is missing here */
}

static bool copy_one(void *context, const struct files_entry *entry)
{
    struct files_run *run = context;
    char name[NAME_BYTES];
    int64_t there, here;
    bool is_same = false;
    name_object(run, entry, name);
    if (!object_store_measure(run->store, name, &there))
        return report_store(run, name);
    if (there == entry->size && !is_same_file(run, entry, name, &is_same))
        return false;
    if (is_same) {
        run->skipped++;
        return true;
    }
    if (!measure_local(run, entry, &here))
        return false;
    if (here != entry->size)
        return report_missing(run, entry, "copy");
    return upload(run, entry, name);
}

/* --- fetch --- */

struct fetching {
    struct blob_upload *upload;
    struct blob_check *check;
    enum fault fault;
};

static bool fetch_piece(void *context, struct bytes piece)
{
    struct fetching *fetching = context;
    blob_check_add(fetching->check, piece);
    fetching->fault = blob_store_write(fetching->upload, piece);
    return !fetching->fault;
}

/* The file appears only if its bytes are right. */
static bool download(struct files_run *run, const struct files_entry *entry, const char *name)
{
    struct fetching fetching = {NULL, NULL, FAULT_NONE};
    if (blob_store_begin(run->blobs, bytes_of(run->walk.target.conf->database), NULL, &fetching.upload))
        return false;
    fetching.check = begin_check(run, entry);
    bool is_read = object_store_read(run->store, name, entry->size, fetch_piece, &fetching);
    enum sealed_file_state state = blob_check_end(fetching.check, NULL);
    if (!is_read || fetching.fault) {
        blob_store_abandon(fetching.upload);
        return is_read ? false : report_store(run, name);
    }
    if (state != SEALED_FILE_FINE) {
        blob_store_abandon(fetching.upload);
        return report_bytes(run, entry, run->store_name, state);
    }
    if (blob_store_seal_as(fetching.upload, &entry->digest)) {
        blob_store_abandon(fetching.upload);
        return false;
    }
    if (blob_store_finish(fetching.upload))
        return false;
    run->done++;
    run->done_bytes += entry->size;
    return true;
}

static bool fetch_one(void *context, const struct files_entry *entry)
{
    struct files_run *run = context;
    char name[NAME_BYTES];
    int64_t there, here;
    name_object(run, entry, name);
    if (!measure_local(run, entry, &here))
        return false;
    if (here == entry->size) {
        run->skipped++;
        return true;
    }
    if (!object_store_measure(run->store, name, &there))
        return report_store(run, name);
    if (there != entry->size)
        return report_missing(run, entry, run->store_name);
    return download(run, entry, name);
}

/* --- verify --- */

static bool check_piece(void *context, struct bytes piece)
{
    blob_check_add(context, piece);
    return true;
}

static bool verify_one(void *context, const struct files_entry *entry)
{
    struct files_run *run = context;
    const char *where = run->store ? run->store_name : "verify";
    char name[NAME_BYTES];
    int64_t size;
    name_object(run, entry, name);
    if (run->store && !object_store_measure(run->store, name, &size))
        return report_store(run, name);
    if (!run->store && !measure_local(run, entry, &size))
        return false;
    if (size != entry->size)
        return report_missing(run, entry, where);
    struct blob_check *check = begin_check(run, entry);
    bool is_read = run->store ? object_store_read(run->store, name, size, check_piece, check)
                              : !stored_files_read_bytes(run->stored, &entry->digest, check_piece, check);
    enum sealed_file_state state = blob_check_end(check, NULL);
    if (!is_read)
        return run->store ? report_store(run, name) : false;
    run->done++;
    run->done_bytes += size;
    return state == SEALED_FILE_FINE || report_bytes(run, entry, where, state);
}

/* --- the commands --- */

static bool cmd_files_open_store(struct control *control, const char *name, int64_t timeout_s,
                                 struct object_store **store_r)
{
    struct object_store_place *place = ARENA_NEW(control->arena, struct object_store_place);
    *store_r = NULL;
    if (!files_place_find(control, name, place))
        return false;
    place->timeout_s = timeout_s;
    *store_r = object_store_open(place);
    return true;
}

/* Files that root writes belong to the server's user, as the directory does. */
static bool become_owner(const char *directory, int64_t *group_r)
{
    struct stat status;
    *group_r = BLOB_NO_GROUP;
    bool is_fine = stat(directory, &status) == 0;
    if (is_fine) {
        *group_r = status.st_gid;
        is_fine = geteuid() != 0 ||
                  (setgroups(0, NULL) == 0 && setgid(status.st_gid) == 0 && setuid(status.st_uid) == 0);
    }
    if (!is_fine)
        message_print("blob_directory = %s: %m", directory);
    return is_fine;
}

static bool cmd_files_read_keys(struct control *control, struct files_run *run)
{
    struct data_keys *keys;
    if (!ns_keys_read(control, run->walk.target.pg, &keys))
        return false;
    run->keys = data_keys_of_files(keys);
    return true;
}

static bool run_all(struct files_run *run, bool (*visit)(void *context, const struct files_entry *entry),
                    const char *done)
{
    bool is_done = files_walk_run(&run->walk, visit, run);
    printf("%s: %lld files %s, %lld bytes", run->walk.target.conf->code, (long long)run->done, done,
           (long long)run->done_bytes);
    if (run->skipped)
        printf("; %lld already there", (long long)run->skipped);
    if (run->wrong)
        printf("; %lld are missing or damaged", (long long)run->wrong);
    printf("%s\n", is_done ? "" : "; not finished: run the command again");
    return is_done && !run->wrong;
}

struct files_command {
    struct command command;
    bool (*visit)(void *context, const struct files_entry *entry);
    const char *done;
    bool is_writer;
};

static int work(struct control *control, const struct files_command *files, int argc, char **argv)
{
    struct files_run run = {.store = NULL};
    int64_t timeout_s = TIMEOUT_S, group = BLOB_NO_GROUP;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        OPTION_NUMBER("timeout", "SECONDS", &timeout_s, 1, TIMEOUT_MOST_S,
                      "Wait so long for an answer of the store (default: 60)."),
    };
    char **words = control_begin(control, &files->command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    const char *directory = control->settings.blob_directory;
    run.store_name = words[1];
    bool is_fine = (!words[1] || cmd_files_open_store(control, words[1], timeout_s, &run.store)) &&
                   files_walk_open(&run.walk, control, words[0]) && cmd_files_read_keys(control, &run);
    if (is_fine)
        run.stored = stored_files_open(control, run.walk.target.conf->database);
    if (is_fine && files->is_writer)
        is_fine = stored_files_connect(run.stored) && become_owner(directory, &group);
    if (is_fine) {
        run.blobs = blob_store_open(directory, group);
        is_fine = run_all(&run, files->visit, files->done);
        blob_store_close(run.blobs);
    }
    if (run.stored)
        stored_files_close(run.stored);
    if (run.store)
        object_store_close(run.store);
    return is_fine ? CONTROL_DONE : CONTROL_FAILED;
}

static int files_copy(struct control *control, int argc, char **argv)
{
    static const struct files_command files = {
        .command = {"files copy", "CODE STORE", 2, 2, "Copy the files of a namespace to an object store.",
                    "Files that the store has, with their size, are not copied again.\n"},
        .visit = copy_one,
        .done = "copied",
    };
    return work(control, &files, argc, argv);
}

static int files_fetch(struct control *control, int argc, char **argv)
{
    static const struct files_command files = {
        .command = {"files fetch", "CODE STORE", 2, 2,
                    "Fetch the files that are missing here from an object store.",
                    "A file whose bytes have another digest is refused.\n"},
        .visit = fetch_one,
        .done = "fetched",
        .is_writer = true,
    };
    return work(control, &files, argc, argv);
}

static int files_verify(struct control *control, int argc, char **argv)
{
    static const struct files_command files = {
        .command = {"files verify", "CODE [STORE]", 1, 2,
                    "Read all files of a namespace, here or in an object store, and check their digests.",
                    NULL},
        .visit = verify_one,
        .done = "read",
    };
    return work(control, &files, argc, argv);
}

/* --- check --- */

struct check_answer {
    struct bytes expected;
    bool is_same;
};

static bool cmd_files_compare(void *context, struct bytes piece)
{
    struct check_answer *comparison = context;
    comparison->is_same = bytes_equal(piece, comparison->expected);
    return true;
}

/* Sends each request that the other commands send, for an object of its own. */
static bool try_store(struct object_store *store, const char *name, const char **problem_r)
{
    char text[2 * CHECK_BYTES];
    unsigned char random[CHECK_BYTES];
    struct check_answer comparison = {{text, sizeof text}, false};
    int64_t size;
    crypto_random(random, sizeof random);
    hex_write(random, sizeof random, text);
    struct object_upload *upload = object_store_begin(store, name, sizeof text);
    *problem_r = "it cannot be written";
    if (!object_store_write(upload, comparison.expected)) {
        object_store_abandon(upload);
        return false;
    }
    if (!object_store_finish(upload))
        return false;
    *problem_r = "it cannot be read";
    if (!object_store_measure(store, name, &size) ||
        !object_store_read(store, name, sizeof text, cmd_files_compare, &comparison))
        return false;
    *problem_r = "it cannot be removed";
    if (!object_store_remove(store, name) || !object_store_measure(store, name, &size))
        return false;
    *problem_r = comparison.is_same && size < 0
                     ? NULL
                     : "it does not return what was written, or still has what was removed";
    return true;
}

static int files_check(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("files check", "STORE", "Write, read and remove an object of an object store.", NULL);
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control)};
    unsigned char random[RANDOM_BYTES];
    char name[NAME_BYTES] = "stampd-check/";
    const char *problem;
    struct object_store *store;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!cmd_files_open_store(control, words[0], TIMEOUT_S, &store))
        return CONTROL_FAILED;
    crypto_random(random, sizeof random);
    hex_write(random, sizeof random, name + strlen(name));
    bool is_answered = try_store(store, name, &problem);
    if (!is_answered)
        message_print("%s: %s: %s", words[0], problem, object_store_problem(store));
    else if (problem)
        message_print("%s: %s", words[0], problem);
    else
        printf("%s: objects can be written, read and removed\n", words[0]);
    object_store_close(store);
    return is_answered && !problem ? CONTROL_DONE : CONTROL_FAILED;
}

int control_files(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"check", "Try an object store.", files_check},
        {"copy", "Copy files to an object store.", files_copy},
        {"fetch", "Fetch missing files from an object store.", files_fetch},
        {"place", "Show or set where the files of a namespace belong.", files_place},
        {"verify", "Check files by their digests.", files_verify},
    };
    return options_choose("files", "Files of attachments: where they belong, and copies of them.\n", choices,
                          COUNT_OF(choices), control, argc, argv);
}
