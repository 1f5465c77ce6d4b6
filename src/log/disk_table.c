/* disk_table: LMDB, which has one writer of all processes, below a log.
 *
 * A change is appended to the log, under LMDB's right to write; then its transaction is given up.  When the
 * log has no room, when the table might have none for what is in the log, or when the log is broken, all of
 * the log and the change go into the transaction, with the next epoch, and it is committed: in this moment
 * the log is empty, as what it has belongs to an epoch that is over.  If the process dies before, the log is
 * as it was.
 *
 * Whoever reads the log without the right to write may find it overwritten by the next epoch meanwhile: LMDB
 * has another transaction then, and it reads again. */
#include "log/disk_table.h"

#include "config.h"

#ifdef HAVE_RECORDS_ON_DISK

#include <errno.h>
#include <lmdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crash.h"
#include "base/log.h"
#include "edge/crypto/crypto.h"
#include "log/disk_entries.h"
#include "log/disk_log.h"

/* Processes that read at the same moment. */
enum { READERS_MOST = 1024 };
/* Of the room of the table. */
enum { LOG_PART = 16, LOG_LEAST = 256 << 10, LOG_MOST = 16 << 20 };
/* Pages of the table that an entry can change; and how much of the room may be promised to the log: LMDB does
 * not reuse at once what the last two transactions have left. */
enum { PAGES_OF_ENTRY = 6, PAGE_BYTES = 4096, PROMISED_PART = 3 };
enum { KEPT_BYTES = 1 << 20, PROBLEM_BYTES = 300 };

static const struct bytes epoch_key = {"e", 1};

struct disk_table {
    MDB_env *env;
    MDB_dbi table;
    MDB_txn *change;
    struct builder body; /* of the change */
    uint64_t puts;       /* in it */
    bool is_direct;      /* the change stands in the transaction, and all of the log before it */
    char *folder;
    size_t bytes;
    pid_t owner;
    struct disk_epoch epoch; /* of what follows */
    struct disk_log *log;    /* NULL: there is none yet */
    struct disk_entries *entries;
    uint64_t pages; /* of the table that the entries may change */
    bool is_broken; /* the log */
    char problem[PROBLEM_BYTES];
};

static const char full[] = "its room is used up";

static const char *word(int error)
{
    return error == MDB_MAP_FULL ? full : mdb_strerror(error);
}

bool disk_table_is_full(const char *error)
{
    return error == full;
}

static MDB_val value_of(struct bytes text)
{
    return (MDB_val){text.size, (void *)(uintptr_t)text.data};
}

/* --- the table --- */

static int open_env(struct disk_table *disk)
{
    int error = mdb_env_create(&disk->env);
    if (!error)
        error = mdb_env_set_mapsize(disk->env, disk->bytes);
    if (!error)
        error = mdb_env_set_maxreaders(disk->env, READERS_MOST);
    if (!error)
        error = mdb_env_open(disk->env, disk->folder, MDB_NOTLS, 0600);
    if (error && disk->env)
        mdb_env_close(disk->env);
    if (error)
        disk->env = NULL;
    return error;
}

/* After a commit that has failed in the middle. */
static int reopen_env(struct disk_table *disk)
{
    MDB_txn *reading;
    if (disk->env)
        mdb_env_close(disk->env);
    disk->env = NULL;
    int error = open_env(disk);
    if (!error)
        error = mdb_txn_begin(disk->env, NULL, MDB_RDONLY, &reading);
    if (error)
        return error;
    error = mdb_dbi_open(reading, NULL, 0, &disk->table);
    mdb_txn_abort(reading);
    return error;
}

static int begin_disk_table(struct disk_table *disk, unsigned flags, MDB_txn **transaction_r)
{
    int error = disk->env ? mdb_txn_begin(disk->env, NULL, flags, transaction_r) : MDB_PANIC;
    if (error == MDB_READERS_FULL) {
        int dead;
        error = mdb_reader_check(disk->env, &dead); /* of processes that died while they read */
    } else if (error == MDB_MAP_RESIZED && !disk->change) {
        error = mdb_env_set_mapsize(disk->env, 0); /* a process with more room has made it grow */
    } else if (error == MDB_PANIC && !disk->change) {
        error = reopen_env(disk);
    } else {
        return error;
    }
    return error ? error : mdb_txn_begin(disk->env, NULL, flags, transaction_r);
}

/* The epoch; number 0: the table is new. */
static int read_epoch(struct disk_table *disk, MDB_txn *transaction, struct disk_epoch *epoch_r)
{
    MDB_val place = value_of(epoch_key), value;
    *epoch_r = (struct disk_epoch){0, 0};
    int error = mdb_get(transaction, disk->table, &place, &value);
    if (!error && value.mv_size == sizeof *epoch_r)
        memcpy(epoch_r, value.mv_data, sizeof *epoch_r);
    return error == MDB_NOTFOUND ? 0 : error;
}

static int disk_table_store(struct disk_table *disk, const struct disk_entry *entry)
{
    MDB_val place = value_of(entry->key), value = value_of(entry->text);
    int error = entry->text.data ? mdb_put(disk->change, disk->table, &place, &value, 0)
                                 : mdb_del(disk->change, disk->table, &place, NULL);
    return error == MDB_NOTFOUND ? 0 : error;
}

/* --- the log --- */

static size_t log_bytes(const struct disk_table *disk)
{
    size_t bytes = disk->bytes / LOG_PART;
    return bytes < LOG_LEAST ? LOG_LEAST : bytes < LOG_MOST ? bytes : LOG_MOST;
}

/* Opens the log if there is one.  Of a table that has one, no process commits anything without it. */
static bool attach(struct disk_table *disk)
{
    if (disk->log)
        return true;
    enum disk_log_opened opened = disk_log_open(&disk->log, disk->folder, disk->problem, PROBLEM_BYTES);
    if (opened == DISK_LOG_OPENED)
        disk->entries = disk_entries_create(disk_log_view(disk->log));
    disk->epoch = (struct disk_epoch){0, 0};
    return opened != DISK_LOG_REFUSED;
}

static void absorb(struct disk_table *disk, struct bytes change)
{
    size_t before = disk_entries_count(disk->entries);
    if (!disk_entries_add(disk->entries, change))
        log_often(LOG_LEVEL_ERROR, "disk-table", "%s: a change in the log is malformed", disk->folder);
    disk->pages += (disk_entries_count(disk->entries) - before) * PAGES_OF_ENTRY + change.size / PAGE_BYTES;
}

static void begin_epoch(struct disk_table *disk, struct disk_epoch epoch)
{
    const struct siphash_key key = {{epoch.number, epoch.salt}};
    disk_entries_clear(disk->entries, &key);
    disk_log_begin(disk->log, epoch);
    disk->epoch = epoch;
    disk->pages = 0;
    disk->is_broken = false;
}

static void read_on(struct disk_table *disk)
{
    struct bytes change;
    enum disk_log_next next;
    while ((next = disk_log_next(disk->log, &change)) == DISK_LOG_CHANGE)
        absorb(disk, change);
    disk->is_broken = next == DISK_LOG_BROKEN;
}

/* Reads what the log has beyond the table as of this transaction. */
static int disk_table_follow(struct disk_table *disk, MDB_txn *transaction)
{
    struct disk_epoch epoch;
    int error = read_epoch(disk, transaction, &epoch);
    if (error || !disk->log)
        return error;
    bool is_same = epoch.number == disk->epoch.number && epoch.salt == disk->epoch.salt;
    if (!is_same || !disk_log_is_same(disk->log))
        begin_epoch(disk, epoch);
    read_on(disk);
    return 0;
}

/* --- a change --- */

static void end_change(struct disk_table *disk)
{
    disk->change = NULL;
    disk->is_direct = false;
    disk->puts = 0;
    builder_clear(&disk->body, KEPT_BYTES);
}

static int store_all(struct disk_table *disk, struct bytes change)
{
    int error = 0;
    for (struct disk_entry entry; !error && disk_entries_cut(&change, &entry);)
        error = disk_table_store(disk, &entry);
    return error;
}

/* All of the log, and then the change, into the transaction. */
static int go_direct(struct disk_table *disk)
{
    int dead, error = 0;
    struct disk_entry entry;
    if (disk->is_direct)
        return 0;
    if (mdb_reader_check(disk->env, &dead)) /* what they read would not be used again */
        log_often(LOG_LEVEL_WARNING, "disk-table", "%s: dead readers cannot be sought", disk->folder);
    for (size_t place = 0; !error && disk->log && disk_entries_next(disk->entries, &place, &entry);)
        error = disk_table_store(disk, &entry);
    disk->is_direct = true;
    if (!error)
        error = store_all(disk, builder_bytes(&disk->body));
    builder_clear(&disk->body, KEPT_BYTES); /* of a large change there is no second copy */
    return error;
}

/* Commits to the table: a new epoch. */
static int commit_direct(struct disk_table *disk)
{
    struct disk_epoch epoch;
    int error = read_epoch(disk, disk->change, &epoch);
    epoch.number++;
    crypto_random(&epoch.salt, sizeof epoch.salt);
    const struct disk_entry entry = {epoch_key, {(const char *)&epoch, sizeof epoch}};
    if (!error)
        error = disk_table_store(disk, &entry);
    if (error) {
        mdb_txn_abort(disk->change);
        return error;
    }
    crash_at(CRASH_DISK_TABLE_FILLED);
    error = mdb_txn_commit(disk->change);
    crash_at(CRASH_DISK_TABLE_EMPTIED);
    if (disk->log && error)
        disk_log_break(disk->log); /* whether the epoch is over on disk is not known */
    else if (disk->log)
        begin_epoch(disk, epoch);
    return error;
}

/* May the change be acknowledged when it stands in the log only?  The table has to have room for it later. */
static bool is_for_log(const struct disk_table *disk)
{
    MDB_stat stat;
    MDB_envinfo info;
    if (!disk->log || disk->is_broken || disk->is_direct || !disk_log_has_room(disk->log, disk->body.size) ||
        mdb_stat(disk->change, disk->table, &stat) || mdb_env_info(disk->env, &info))
        return false;
    uint64_t all = info.me_mapsize / stat.ms_psize,
             used = stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages,
             more = disk->puts * PAGES_OF_ENTRY + disk->body.size / PAGE_BYTES;
    return used < all && (disk->pages + more) * PROMISED_PART <= all - used;
}

const char *disk_table_begin(struct disk_table *disk)
{
    MDB_txn *change;
    assert(!disk->change);
    int error = begin_disk_table(disk, 0, &change);
    if (error)
        return word(error);
    disk->change = change;
    bool is_attached = attach(disk);
    error = is_attached ? disk_table_follow(disk, change) : 0;
    if (is_attached && !error)
        return NULL;
    disk_table_abandon(disk);
    return error ? word(error) : disk->problem;
}

const char *disk_table_put(struct disk_table *disk, struct bytes key, struct bytes text)
{
    const struct disk_entry entry = {key, text};
    if (key.size < 2 || key.size > DISK_TABLE_KEY_MOST || text.size >= UINT32_MAX)
        return "a key or a text has a size that is not allowed";
    if (!disk->is_direct) {
        disk_entries_write(&disk->body, &entry);
        disk->puts++;
        if (disk->log && disk_log_has_room(disk->log, disk->body.size))
            return NULL;
    }
    int error = disk->is_direct ? disk_table_store(disk, &entry) : go_direct(disk);
    return error ? word(error) : NULL;
}

const char *disk_table_commit(struct disk_table *disk)
{
    const char *problem = NULL;
    struct bytes change;
    if (!disk->is_direct && !disk->body.size) {
        mdb_txn_abort(disk->change);
    } else if (is_for_log(disk)) {
        problem = disk_log_append(disk->log, builder_bytes(&disk->body), &change);
        if (!problem)
            absorb(disk, change);
        mdb_txn_abort(disk->change);
    } else {
        int error = go_direct(disk);
        if (error)
            mdb_txn_abort(disk->change);
        else
            error = commit_direct(disk);
        problem = error ? word(error) : NULL;
    }
    end_change(disk);
    return problem;
}

void disk_table_abandon(struct disk_table *disk)
{
    mdb_txn_abort(disk->change);
    end_change(disk);
}

/* --- reading --- */

/* One look; `is_stale_r`: the log may have been overwritten meanwhile. */
static int look_up(struct disk_table *disk, struct bytes key, struct builder *text, bool *is_there_r,
                   bool *is_stale_r)
{
    MDB_txn *reading;
    MDB_val place = value_of(key), value;
    struct disk_entry entry;
    int error = begin_disk_table(disk, MDB_RDONLY, &reading);
    if (error)
        return error;
    error = disk_table_follow(disk, reading);
    if (!error && disk->log && disk_entries_find(disk->entries, key, &entry)) {
        builder_add_bytes(text, entry.text);
        *is_there_r = entry.text.data != NULL;
    } else if (!error) {
        error = mdb_get(reading, disk->table, &place, &value);
        if (!error)
            builder_add(text, value.mv_data, value.mv_size);
        *is_there_r = !error;
    }
    atomic_thread_fence(memory_order_acquire);
    size_t before = mdb_txn_id(reading);
    mdb_txn_reset(reading);
    *is_stale_r = mdb_txn_renew(reading) || mdb_txn_id(reading) != before;
    mdb_txn_abort(reading);
    return error == MDB_NOTFOUND ? 0 : error;
}

const char *disk_table_get(struct disk_table *disk, struct bytes key, struct builder *text, bool *is_there_r)
{
    size_t before = text->size;
    bool is_stale = true;
    int error = 0;
    if (!attach(disk)) {
        *is_there_r = false;
        return disk->problem;
    }
    while (!error && is_stale) {
        text->size = before;
        *is_there_r = false;
        error = look_up(disk, key, text, is_there_r, &is_stale);
    }
    if (!error)
        return NULL;
    text->size = before;
    *is_there_r = false;
    return word(error);
}

const char *disk_table_each(struct disk_table *disk,
                            enum disk_table_next (*take)(void *context, struct bytes key, struct bytes text),
                            void *context)
{
    return disk_table_each_from(disk, NO_BYTES, take, context);
}

const char *disk_table_each_from(struct disk_table *disk, struct bytes from,
                                 enum disk_table_next (*take)(void *context, struct bytes key,
                                                              struct bytes text),
                                 void *context)
{
    MDB_cursor *cursor;
    MDB_val key = value_of(from), value;
    MDB_cursor_op step = from.data ? MDB_SET_RANGE : MDB_NEXT;
    int error = go_direct(disk);
    if (!error)
        error = mdb_cursor_open(disk->change, disk->table, &cursor);
    if (error)
        return word(error);
    enum disk_table_next next = DISK_TABLE_KEEP;
    while (!error && next != DISK_TABLE_STOP) {
        error = mdb_cursor_get(cursor, &key, &value, step);
        step = MDB_NEXT;
        next = DISK_TABLE_KEEP;
        if (!error && key.mv_size > epoch_key.size)
            next = take(context, (struct bytes){key.mv_data, key.mv_size},
                        (struct bytes){value.mv_data, value.mv_size});
        if (!error && next == DISK_TABLE_REMOVE)
            error = mdb_cursor_del(cursor, 0); /* MDB_NEXT then returns the one that has taken its place */
    }
    mdb_cursor_close(cursor);
    return error && error != MDB_NOTFOUND ? word(error) : NULL;
}

/* --- opening --- */

/* What no death explains: the changes behind it are still good, each is the last of its keys. */
static bool report_damage(struct disk_table *disk)
{
    bool is_damaged = false;
    for (uint64_t lost; disk_log_skip_damage(disk->log, &lost); is_damaged = true) {
        log_error("%s: the log is damaged: changes that are lost: %llu", disk->folder,
                  (unsigned long long)lost);
        read_on(disk);
    }
    return is_damaged;
}

/* As the writer: creates what is missing, and reads the log. */
static const char *open_log(struct disk_table *disk)
{
    struct disk_epoch epoch;
    int error = read_epoch(disk, disk->change, &epoch);
    if (error)
        return word(error);
    if (!attach(disk))
        return disk->problem;
    if (!disk->log && !disk_log_create(disk->folder, log_bytes(disk)))
        log_warning("%s: there is no room for a log, changes will be slow: %m", disk->folder);
    else if (!disk->log && !attach(disk))
        return disk->problem;
    if (disk->log && disk_log_is_foreign(disk->log, epoch))
        return "its log is newer than its table, or of another one: they are not of one copy";
    error = disk_table_follow(disk, disk->change);
    if (!error && disk->log && (report_damage(disk) || !epoch.number))
        error = go_direct(disk); /* nothing is appended to an epoch that is damaged, or none */
    return error ? word(error) : NULL;
}

static const char *open_table(struct disk_table *disk)
{
    int error = open_env(disk);
    if (!error)
        error = begin_disk_table(disk, 0, &disk->change);
    if (error) {
        disk->change = NULL;
        return word(error);
    }
    error = mdb_dbi_open(disk->change, NULL, 0, &disk->table);
    const char *wrong = error ? word(error) : open_log(disk);
    if (!wrong)
        return disk_table_commit(disk);
    disk_table_abandon(disk);
    return wrong;
}

struct disk_table *disk_table_open(const char *folder, size_t bytes, char *problem, size_t problem_size)
{
    struct disk_table *disk = calloc(1, sizeof *disk);
    if (!disk || !(disk->folder = strdup(folder)))
        log_fatal("out of memory opening a table");
    disk->bytes = bytes;
    disk->owner = getpid();
    const char *wrong = mkdir(folder, 0700) && errno != EEXIST ? strerror(errno) : NULL;
    if (!wrong)
        wrong = open_table(disk);
    if (!wrong)
        return disk;
    snprintf(problem, problem_size, "%s: %s", folder, wrong);
    disk_table_close(disk);
    return NULL;
}

void disk_table_close(struct disk_table *disk)
{
    if (!disk)
        return;
    if (disk->env)
        mdb_env_close(disk->env);
    disk_log_close(disk->log);
    disk_entries_destroy(disk->entries);
    builder_free(&disk->body);
    free(disk->folder);
    free(disk);
}

bool disk_table_is_own(const struct disk_table *disk)
{
    return disk->owner == getpid();
}

#else

#include <stdio.h>

static const char missing[] = "this build has no records on disk: it was made without LMDB";

/* There is no table that the other functions could be called for. */
struct disk_table *disk_table_open(const char *folder, size_t bytes, char *problem, size_t problem_size)
{
    (void)bytes;
    snprintf(problem, problem_size, "%s: %s", folder, missing);
    return NULL;
}

void disk_table_close(struct disk_table *disk)
{
    assert(!disk);
}

bool disk_table_is_own(const struct disk_table *disk)
{
    return disk != NULL;
}

bool disk_table_is_full(const char *error)
{
    (void)error;
    return false;
}

const char *disk_table_begin(struct disk_table *disk)
{
    (void)disk;
    return missing;
}

const char *disk_table_put(struct disk_table *disk, struct bytes key, struct bytes text)
{
    (void)disk, (void)key, (void)text;
    return missing;
}

const char *disk_table_commit(struct disk_table *disk)
{
    (void)disk;
    return missing;
}

void disk_table_abandon(struct disk_table *disk)
{
    (void)disk;
}

const char *disk_table_get(struct disk_table *disk, struct bytes key, struct builder *text, bool *is_there_r)
{
    (void)disk, (void)key, (void)text;
    *is_there_r = false;
    return missing;
}

const char *disk_table_each(struct disk_table *disk,
                            enum disk_table_next (*take)(void *context, struct bytes key, struct bytes text),
                            void *context)
{
    return disk_table_each_from(disk, NO_BYTES, take, context);
}

const char *disk_table_each_from(struct disk_table *disk, struct bytes from,
                                 enum disk_table_next (*take)(void *context, struct bytes key,
                                                              struct bytes text),
                                 void *context)
{
    (void)disk, (void)from, (void)take, (void)context;
    return missing;
}

#endif
