/* journal_far_fixture: records of a stamp-journal whose contents are on disk alone, and readers of them that
 * wait at a gate. */
#ifndef STAMPD_TEST_JOURNAL_FAR_FIXTURE_H
#define STAMPD_TEST_JOURNAL_FAR_FIXTURE_H

#include "records/records_private.h" /* before the fixture, which has a variable of this name */

#include "journal_disk_fixture.h"

#include <lmdb.h>
#include <string.h>

enum { CONTENT = 80 };
_Static_assert((int)CONTENT >= (int)RECORDS_APART_LEAST && (int)CONTENT < (int)PEER_TEXT_MOST,
               "it can be given up, and a peer has room for it");

enum { EPOCH_KEY = 1 }; /* bytes; records have longer ones */

/* In place of LMDB's: a look at the table for a record. */
int mdb_get(MDB_txn *transaction, MDB_dbi table, MDB_val *key, MDB_val *value)
{
    static int (*real)(MDB_txn *, MDB_dbi, MDB_val *, MDB_val *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "mdb_get");
    if (shared && key->mv_size > EPOCH_KEY)
        wait_at_gate(&shared->is_read_gated);
    return real(transaction, table, key, value);
}

/* "far 7" has 80 sevens. */
static const char *content_of(const char *key)
{
    static char content[CONTENT + 1];
    memset(content, key[strlen(key) - 1], CONTENT);
    return content;
}

static const char *far_key(int number)
{
    static char key[24];
    snprintf(key, sizeof key, "far %03d", number);
    return key;
}

/* Its content is on disk alone from now on. */
static void evict(const char *key)
{
    assert_true(records_enter(records));
    uint32_t piece = records_find(records, records_find_space(records, NS, false), bytes_of(key));
    assert_true(piece != 0);
    records_give_up_content(records, records_key(records, piece)->value);
    records_commit(records);
    records_leave(records);
}

/* --- a daemon --- */

static int reading_client(const char *key)
{
    int client = peer_enter(socket_path);
    peer_send_get(client, key);
    return client;
}

/* Far records, of which no content is in memory, and a near one; readers are held from now on. */
static void prepare(int far)
{
    int client = peer_enter(socket_path);
    for (int i = 0; i < far; i++)
        peer_set(client, far_key(i), content_of(far_key(i)), JOURNAL_PERSIST);
    close(client);
    assert_int_equal(kill(daemon_pid, SIGTERM), 0);
    child_expect(daemon_pid);
    begin_again(); /* with an empty log */
    for (int i = 0; i < far; i++)
        evict(far_key(i));
    client = peer_enter(socket_path);
    peer_set(client, "near", "1", 0);
    close(client);
    atomic_store(&shared->is_read_gated, true);
}

/* For the readers that are there, and all that come. */
static void let_read(int readers)
{
    atomic_store(&shared->is_read_gated, false);
    while (readers--)
        sem_post(&shared->opened);
}

static void expect_content(int client, const char *key)
{
    struct peer_answer answer;
    assert_true(peer_receive(client, &answer));
    assert_string_equal(answer.error, "");
    assert_string_equal(answer.value, content_of(key));
}

#endif
