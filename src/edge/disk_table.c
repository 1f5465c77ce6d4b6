/* disk_table: LMDB has one writer of all processes, and syncs each commit. */
#include "edge/disk_table.h"

#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

/* Processes that read at the same moment. */
enum { READERS_MOST = 1024 };

struct disk_table {
    MDB_env *env;
    MDB_dbi table;
    MDB_txn *change;
    pid_t owner;
};

static const char *word(int error)
{
    return error == MDB_MAP_FULL ? "its room is used up" : mdb_strerror(error);
}

static int begin(struct disk_table *disk, unsigned flags, MDB_txn **transaction_r)
{
    int error = mdb_txn_begin(disk->env, NULL, flags, transaction_r);
    if (error == MDB_READERS_FULL) {
        int dead;
        error = mdb_reader_check(disk->env, &dead); /* of processes that died while they read */
        return error ? error : mdb_txn_begin(disk->env, NULL, flags, transaction_r);
    }
    if (error != MDB_MAP_RESIZED || disk->change)
        return error;
    error = mdb_env_set_mapsize(disk->env, 0); /* a process with more room has made it grow */
    return error ? error : mdb_txn_begin(disk->env, NULL, flags, transaction_r);
}

static int open_table(struct disk_table *disk, const char *folder, size_t bytes)
{
    int error = mdb_env_create(&disk->env);
    if (!error)
        error = mdb_env_set_mapsize(disk->env, bytes);
    if (!error && mkdir(folder, 0700) && errno != EEXIST)
        error = errno;
    if (!error)
        error = mdb_env_set_maxreaders(disk->env, READERS_MOST);
    if (!error)
        error = mdb_env_open(disk->env, folder, MDB_NOTLS, 0600);
    if (!error)
        error = begin(disk, 0, &disk->change);
    if (error) {
        disk->change = NULL;
        return error;
    }
    error = mdb_dbi_open(disk->change, NULL, 0, &disk->table);
    if (error)
        mdb_txn_abort(disk->change);
    else
        error = mdb_txn_commit(disk->change);
    disk->change = NULL;
    return error;
}

struct disk_table *disk_table_open(const char *folder, size_t bytes, char *problem, size_t problem_size)
{
    struct disk_table *disk = calloc(1, sizeof *disk);
    if (!disk)
        log_fatal("out of memory opening a table");
    int error = open_table(disk, folder, bytes);
    disk->owner = getpid();
    if (!error)
        return disk;
    snprintf(problem, problem_size, "%s: %s", folder, word(error));
    disk_table_close(disk);
    return NULL;
}

void disk_table_close(struct disk_table *disk)
{
    if (disk && disk->env)
        mdb_env_close(disk->env);
    free(disk);
}

bool disk_table_is_own(const struct disk_table *disk)
{
    return disk->owner == getpid();
}

const char *disk_table_begin(struct disk_table *disk)
{
    assert(!disk->change);
    MDB_txn *change;
    int error = begin(disk, 0, &change);
    disk->change = error ? NULL : change;
    return error ? word(error) : NULL;
}

const char *disk_table_put(struct disk_table *disk, struct bytes key, struct bytes text)
{
    MDB_val place = {key.size, (void *)key.data}, value = {text.size, (void *)text.data};
    int error = text.data ? mdb_put(disk->change, disk->table, &place, &value, 0)
                          : mdb_del(disk->change, disk->table, &place, NULL);
    return error && error != MDB_NOTFOUND ? word(error) : NULL;
}

const char *disk_table_commit(struct disk_table *disk)
{
    int error = mdb_txn_commit(disk->change);
    disk->change = NULL;
    return error ? word(error) : NULL;
}

void disk_table_abandon(struct disk_table *disk)
{
    mdb_txn_abort(disk->change);
    disk->change = NULL;
}

const char *disk_table_get(struct disk_table *disk, struct bytes key, struct builder *text, bool *is_there_r)
{
    MDB_txn *reading;
    MDB_val place = {key.size, (void *)key.data}, value;
    *is_there_r = false;
    int error = begin(disk, MDB_RDONLY, &reading);
    if (error)
        return word(error);
    error = mdb_get(reading, disk->table, &place, &value);
    if (!error)
        builder_add(text, value.mv_data, value.mv_size);
    mdb_txn_abort(reading);
    *is_there_r = !error;
    return error && error != MDB_NOTFOUND ? word(error) : NULL;
}

const char *disk_table_each(struct disk_table *disk,
                            enum disk_table_next (*take)(void *context, struct bytes text), void *context)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    int error = mdb_cursor_open(disk->change, disk->table, &cursor);
    if (error)
        return word(error);
    enum disk_table_next next = DISK_TABLE_KEEP;
    while (!error && next != DISK_TABLE_STOP) {
        error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
        if (!error)
            next = take(context, (struct bytes){value.mv_data, value.mv_size});
        if (!error && next == DISK_TABLE_REMOVE)
            error = mdb_cursor_del(cursor, 0); /* MDB_NEXT then returns the one that has taken its place */
    }
    mdb_cursor_close(cursor);
    return error && error != MDB_NOTFOUND ? word(error) : NULL;
}
