/* document/store on a real PostgreSQL: loading, commits and their refusals, lists, snapshots, sessions lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "model/document/stamp.h"
#include "segment/namespaces.h"
#include "segment/segment_open.h"
#include "store/statements.h"
#include "store/documents/store_commit.h"
#include "store/collections/store_list.h"
#include "store/documents/store_load.h"
#include "store/store_private.h"
#include "store/store_session.h"
#include "scratch.h"

static struct scratch scratch;
static struct arena *arena;
static struct store *store;

static int open_all(void **state UNUSED)
{
    scratch_run(scratch.admin, "truncate stampd.doc, stampd.item; update stampd.namespace set floor = 0");
    arena = arena_create("test");
    store = store_create(&scratch.settings, scratch.segment);
    return store_connect(store, scratch.ns);
}

static void release(void *document)
{
    document_release(document);
}

static int close_all(void **state UNUSED)
{
    arena_destroy(arena);
    store_destroy(store);
    return 0;
}

/* --- small words for the tests --- */

static struct document *load(const char *id, struct document *copy)
{
    struct load load = {.class = BYTES("Doc"), .id = bytes_of(id), .copy = copy};
    assert_int_equal(store_load(store, scratch.ns, arena, &load), FAULT_NONE);
    arena_defer(arena, release, load.document);
    return load.document;
}

struct change {
    struct commit commit;
    struct commit_document documents[8];
    struct draft *drafts[8];
};

static struct draft *take(struct change *change, const char *id)
{
    struct draft *draft = draft_open(arena, load(id, NULL));
    change->drafts[change->commit.count++] = draft;
    return draft;
}

static void set(struct draft *draft, const char *key, const char *content)
{
    draft_set_item(draft, BYTES("Item"), bytes_of(key), false, bytes_of(content));
}

/* Seals and commits what was taken: the version follows from what was seen. */
static enum commit_outcome commit(struct change *change, enum fault *fault_r)
{
    int64_t highest = 0;
    for (size_t i = 0; i < change->commit.count; i++) {
        const struct header *header = &draft_base(change->drafts[i])->header;
        highest = header->version > highest ? header->version : highest;
        highest = header->floor > highest ? header->floor : highest;
    }
    int64_t now = stamp_now();
    change->commit.version = now > highest ? now : stamp_next(highest);
    change->commit.documents = change->documents;
    for (size_t i = 0; i < change->commit.count; i++) {
        struct commit_document *document = &change->documents[i];
        *document = (struct commit_document){.base = draft_base(change->drafts[i]),
                                             .act = draft_act(change->drafts[i])};
        if (document->act != DRAFT_READ)
            draft_seal(change->drafts[i], change->commit.version, 0, &document->rows);
    }
    return store_commit(store, scratch.ns, arena, &change->commit, fault_r);
}

static void commit_done(struct change *change)
{
    enum fault fault;
    assert_int_equal(commit(change, &fault), COMMIT_DONE);
    assert_int_equal(fault, FAULT_NONE);
}

static void put(const char *id, const char *key, const char *content)
{
    struct change change = {0};
    set(take(&change, id), key, content);
    commit_done(&change);
}

static const char *content_of(const struct document *document, const char *key)
{
    const struct item *item = document_find_item(document, BYTES("Item"), bytes_of(key));
    if (!item)
        return "none";
    return item->content.data ? arena_copy(arena, item->content.data, item->content.size) : "tombstone";
}

static int64_t count(const char *what)
{
    return scratch_number(scratch.admin, arena_printf(arena, "select count(*) from stampd.%s", what));
}

static int session_pid(void)
{
    return pg_backend_pid(store->sessions[scratch.ns].pg);
}

static void end_session(void)
{
    assert_int_equal(
        scratch_number(scratch.admin,
                       arena_printf(arena, "select pg_terminate_backend(%d, 5000)::int", session_pid())),
        1);
}

/* --- loading and committing --- */

static void a_document_goes_through_its_lives(void **state UNUSED)
{
    struct document *document = load("life", NULL);
    assert_false(document_exists(document));
    assert_int_equal(document->header.version, 0);

    struct change born = {0};
    struct draft *draft = take(&born, "life");
    set(draft, "b", "{\"n\":1}");
    set(draft, "a", "[ 1 , 2 ]");
    draft_set_item(draft, BYTES("Raw"), BYTES(""), true, BYTES("plain"));
    commit_done(&born);
    document = load("life", NULL);
    assert_true(document->header.version == born.commit.version &&
                document->header.ctime == born.commit.version);
    assert_int_equal(document->item_count, 3);
    assert_string_equal(content_of(document, "a"), "[ 1 , 2 ]"); /* as it was given */
    const struct item *raw = document_find_item(document, BYTES("Raw"), BYTES(""));
    assert_true(raw && raw->raw && bytes_equal(raw->content, BYTES("plain")));
    assert_int_equal(scratch_number(scratch.admin, "select v1 from stampd.doc"), document->header.v1);

    struct change removal = {0};
    draft_remove_item(take(&removal, "life"), BYTES("Item"), BYTES("b"));
    commit_done(&removal);
    assert_string_equal(content_of(load("life", NULL), "b"), "tombstone");

    struct change renewal = {0};
    draft = take(&renewal, "life");
    draft_delete(draft);
    set(draft, "c", "3");
    commit_done(&renewal);
    document = load("life", NULL);
    assert_true(document->header.ctime == renewal.commit.version);
    assert_int_equal(document->item_count, 1);

    struct change death = {0};
    draft_delete(take(&death, "life"));
    commit_done(&death);
    document = load("life", NULL);
    assert_false(document_exists(document));
    assert_true(document->header.version == death.commit.version);
    assert_int_equal(count("item"), 0);

    put("life", "d", "4"); /* on the zombie's row */
    document = load("life", NULL);
    assert_true(document_exists(document) && document->header.ctime > death.commit.version);
}

static void a_copy_is_brought_up_to_date(void **state UNUSED)
{
    put("copy", "a", "1");
    put("copy", "b", "1");
    struct document *copy = load("copy", NULL);
    assert_ptr_equal(load("copy", copy), copy); /* nothing new */
    struct change change = {0};
    struct draft *draft = take(&change, "copy");
    set(draft, "b", "2");
    set(draft, "c", "2");
    commit_done(&change);
    /* A row that only a whole copy would show: proof that just what is newer was read. */
    scratch_run(scratch.admin, "update stampd.item set content = '9' where key = 'a'");
    struct document *merged = load("copy", copy);
    assert_string_equal(content_of(merged, "a"), "1");
    assert_string_equal(content_of(merged, "b"), "2");
    assert_string_equal(content_of(merged, "c"), "2");
    assert_string_equal(content_of(load("copy", NULL), "a"), "9");

    scratch_run(scratch.admin, "update stampd.doc set dtime = version"); /* removals forgotten: the whole */
    assert_string_equal(content_of(load("copy", copy), "a"), "9");
    struct change renewal = {0}; /* another life: the whole */
    draft = take(&renewal, "copy");
    draft_delete(draft);
    set(draft, "z", "1");
    commit_done(&renewal);
    assert_int_equal(load("copy", merged)->item_count, 1);
}

static void tombstones_are_purged(void **state UNUSED)
{
    put("purge", "a", "1");
    put("purge", "b", "1");
    struct change removal = {0};
    draft_remove_item(take(&removal, "purge"), BYTES("Item"), BYTES("a"));
    commit_done(&removal);
    assert_int_equal(count("item"), 2);
    struct change change = {0};
    struct draft *draft = take(&change, "purge");
    set(draft, "b", "2");
    change.commit.version = stamp_now();
    if (change.commit.version <= removal.commit.version)
        change.commit.version = stamp_next(removal.commit.version);
    change.commit.documents = change.documents;
    change.documents[0] = (struct commit_document){.base = draft_base(draft), .act = DRAFT_WRITE};
    draft_seal(draft, change.commit.version, removal.commit.version, &change.documents[0].rows);
    assert_int_equal(change.documents[0].rows.purge_count, 1);
    enum fault fault;
    assert_int_equal(store_commit(store, scratch.ns, arena, &change.commit, &fault), COMMIT_DONE);
    assert_int_equal(count("item"), 1);
}

static void many_are_loaded_at_once(void **state UNUSED)
{
    enum { MANY = 600 };
    scratch_run(scratch.admin, "select stampd.put_item('Doc', 'many' || n, 'Item', 'k', n::text)"
                               " from generate_series(0, 599, 2) n");
    struct load *loads = ARENA_ARRAY(arena, struct load, MANY);
    for (int i = 0; i < MANY; i++)
        loads[i] = (struct load){.class = BYTES("Doc"), .id = bytes_of(arena_printf(arena, "many%d", i))};
    assert_int_equal(store_load_many(store, scratch.ns, arena, loads, MANY), FAULT_NONE);
    for (int i = 0; i < MANY; i++) {
        arena_defer(arena, release, loads[i].document);
        assert_int_equal(document_exists(loads[i].document), i % 2 == 0);
        assert_string_equal(content_of(loads[i].document, "k"),
                            i % 2 ? "none" : arena_printf(arena, "%d", i));
    }
}

/* --- refusals --- */

static void moved_documents_are_named(void **state UNUSED)
{
    put("still", "a", "1");
    put("moved \"quoted\\", "a", "1");
    struct change change = {0};
    set(take(&change, "still"), "a", "2");
    take(&change, "moved \"quoted\\"); /* merely read */
    take(&change, "absent");
    put("moved \"quoted\\", "a", "2");
    put("absent", "a", "2");
    enum fault fault;
    assert_int_equal(commit(&change, &fault), COMMIT_REFUSED);
    assert_int_equal(fault, FAULT_STALE);
    assert_false(change.documents[0].moved);
    assert_true(change.documents[1].moved && change.documents[2].moved);
    assert_string_equal(content_of(load("still", NULL), "a"), "1");
    assert_int_equal(store_commit_verify(store, scratch.ns, arena, &change.commit), FAULT_STALE);
    assert_false(change.documents[0].moved);
    assert_true(change.documents[1].moved && change.documents[2].moved);
    change.commit.count = 1;
    assert_int_equal(store_commit_verify(store, scratch.ns, arena, &change.commit), FAULT_NONE);
}

static void a_birth_stays_above_the_floor(void **state UNUSED)
{
    struct change change = {0};
    set(take(&change, "floor"), "a", "1");
    scratch_run(scratch.admin, "update stampd.namespace set floor = 991231000000000"); /* after the look */
    enum fault fault;
    assert_int_equal(commit(&change, &fault), COMMIT_REFUSED);
    assert_int_equal(fault, FAULT_STALE);
    assert_true(change.documents[0].moved);
    struct change again = {0};
    set(take(&again, "floor"), "a", "1");
    commit_done(&again);
    assert_true(again.commit.version > INT64_C(991231000000000));
}

/* A row put by hand, without holding its absence: between the look and the birth. */
static void a_birth_by_hand_is_a_refusal(void **state UNUSED)
{
    scratch_run(scratch.admin,
                "create function stampd.twin() returns trigger language plpgsql as"
                " $$begin new.id := 'twin'; return new; end$$;"
                " create trigger twin before insert on stampd.doc for each row when (new.id = 'x')"
                " execute function stampd.twin()");
    put("twin", "a", "1");
    struct change change = {0};
    set(take(&change, "x"), "a", "1");
    enum fault fault;
    enum commit_outcome outcome = commit(&change, &fault);
    scratch_run(scratch.admin, "drop function stampd.twin cascade");
    assert_int_equal(outcome, COMMIT_REFUSED);
    assert_int_equal(fault, FAULT_STALE);
    assert_true(change.documents[0].moved);
}

static void a_lock_not_given_is_a_refusal(void **state UNUSED)
{
    put("locked", "a", "1");
    struct change change = {0};
    set(take(&change, "locked"), "a", "2");
    scratch_run(scratch.admin, "begin; select from stampd.doc where id = 'locked' for update");
    int64_t lock_timeout_ms = scratch.settings.lock_timeout_ms;
    enum fault fault;
    enum commit_outcome outcome = commit(&change, &fault);
    scratch_run(scratch.admin, "rollback");
    assert_in_range(lock_timeout_ms, 1, 1000);
    assert_int_equal(outcome, COMMIT_REFUSED);
    assert_int_equal(fault, FAULT_STALE);
    commit_done(&change);
}

/* --- sessions --- */

static void a_read_outlives_its_session(void **state UNUSED)
{
    put("dead", "a", "1");
    end_session();
    assert_string_equal(content_of(load("dead", NULL), "a"), "1");
    end_session();
    struct load loads[2] = {{.class = BYTES("Doc"), .id = BYTES("dead")},
                            {.class = BYTES("Doc"), .id = BYTES("x")}};
    assert_int_equal(store_load_many(store, scratch.ns, arena, loads, 2), FAULT_NONE);
    document_release(loads[0].document);
    document_release(loads[1].document);
    end_session();
    assert_int_equal(store_snapshot_begin(store, scratch.ns), FAULT_NONE);
    store_snapshot_end(store, scratch.ns);
}

static void a_commit_is_never_repeated(void **state UNUSED)
{
    struct change change = {0};
    set(take(&change, "unknown"), "a", "1");
    end_session();
    enum fault fault;
    assert_int_equal(commit(&change, &fault), COMMIT_UNKNOWN);
    assert_int_equal(fault, FAULT_XUNKNOWN);
    assert_int_equal(commit(&change, &fault), COMMIT_REFUSED); /* no session: nothing was sent */
    assert_int_equal(fault, FAULT_XAWAY);
    assert_int_equal(store_reconnect(store, scratch.ns, 5000), FAULT_NONE);
    assert_int_equal(count("doc"), 0);
    end_session();
    assert_int_equal(store_connect(store, scratch.ns), FAULT_NONE); /* looks at the socket, and opens anew */
    commit_done(&change);
}

static void a_snapshot_is_of_one_instant(void **state UNUSED)
{
    put("one", "a", "1");
    put("two", "a", "1");
    assert_int_equal(store_snapshot_begin(store, scratch.ns), FAULT_NONE);
    assert_string_equal(content_of(load("one", NULL), "a"), "1");
    scratch_run(scratch.admin, "select stampd.put_item('Doc', id, 'Item', 'a', '2') from stampd.doc");
    assert_string_equal(content_of(load("two", NULL), "a"), "1");
    store_snapshot_end(store, scratch.ns);
    assert_string_equal(content_of(load("two", NULL), "a"), "2");

    assert_int_equal(store_snapshot_begin(store, scratch.ns), FAULT_NONE);
    end_session(); /* not repeated: it would be of another instant */
    struct load lost = {.class = BYTES("Doc"), .id = BYTES("one")};
    assert_int_equal(store_load(store, scratch.ns, arena, &lost), FAULT_XAWAY);
    store_snapshot_end(store, scratch.ns);
    assert_string_equal(content_of(load("one", NULL), "a"), "2");
}

static void a_missing_database_is_not_asked_for_again_at_once(void **state UNUSED)
{
    int ns = namespaces_find(scratch.segment, BYTES("no such database"));
    for (int i = 0; i < 100; i++)
        assert_int_equal(store_connect(store, ns), FAULT_ODATABASE);
    assert_in_range(store->sessions[ns].failures, 1, 20);
    assert_int_equal(store_reconnect(store, ns, 100), FAULT_ODATABASE);
}

/* store_make_room closes one session to open another, store_rest what is not used for long. */
static void the_session_used_least_makes_room(void **state UNUSED)
{
    int ns =
        namespaces_find(scratch.segment, BYTES("no such database")); /* fails, but only after room was made */
    int64_t connections = scratch.settings.connections;
    scratch.settings.connections = 1;
    assert_non_null(store->sessions[scratch.ns].pg);
    assert_int_equal(store_connect(store, ns), FAULT_ODATABASE);
    assert_null(store->sessions[scratch.ns].pg);
    assert_int_equal(store->open_count, 0);
    assert_int_equal(store_snapshot_begin(store, scratch.ns), FAULT_NONE);
    store->sessions[ns].failures = 0;
    assert_int_equal(store_connect(store, ns), FAULT_ODATABASE);
    assert_non_null(store->sessions[scratch.ns].pg); /* its snapshot is being read */
    store->sessions[scratch.ns].used_ms = INT64_MIN / 2;
    assert_false(store_rest(store));
    store_snapshot_end(store, scratch.ns);
    assert_true(store_rest(store));
    assert_null(store->sessions[scratch.ns].pg);
    assert_false(store_rest(store));
    scratch.settings.connections = connections;
}

/* The session is lost, and others, which cannot be closed, are all that the worker may have. */
static void lose_and_crowd(void)
{
    store_close(store, scratch.ns);
    store->open_count = (int)scratch.settings.connections;
}

static void a_request_that_has_had_its_session_stays(void **state UNUSED)
{
    struct pg *pg;
    store_close(store, scratch.ns);
    store_set_visitor(store, scratch.ns);
    assert_int_equal(store_use(store, scratch.ns, &pg), FAULT_NONE); /* there is room */
    lose_and_crowd();
    assert_int_equal(store_connect(store, scratch.ns), FAULT_NONE); /* it may have committed */

    store_set_visitor(store, scratch.ns);
    lose_and_crowd();
    assert_int_equal(store_connect(store, scratch.ns), FAULT_ELSEWHERE);
    assert_int_equal(store_use(store, scratch.ns, &pg), FAULT_ELSEWHERE);
    store_clear_visitor(store);
    assert_int_equal(store_use(store, scratch.ns, &pg), FAULT_NONE);
    store->open_count = 1;
}

/* --- lists --- */

/* Ids of a page, joined; then "…" when there is more. */
static const char *page(struct list_query query, struct bytes *more_r)
{
    struct header *headers;
    size_t found;
    query.class = BYTES("Doc");
    assert_int_equal(store_list(store, scratch.ns, arena, &query, &headers, &found, more_r), FAULT_NONE);
    const char *text = "";
    for (size_t i = 0; i < found; i++)
        text = arena_printf(arena, "%s%.*s ", text, (int)headers[i].id.size, headers[i].id.data);
    return more_r->data ? arena_printf(arena, "%s…", text) : text;
}

static void lists_go_page_by_page(void **state UNUSED)
{
    struct bytes more;
    scratch_run(
        scratch.admin,
        "select stampd.put_item(c, id, 'Item', 'k', '1') from unnest(array['Dob', 'Doc', 'Doc1', 'Dod']) c,"
        " unnest(array['a', 'b', 'ba', 'bé', 'b\U0010FFFF', 'b\U0010FFFFx', 'c', 'É']) id;"
        "select stampd.delete_document('Doc', 'c')");
    assert_string_equal(page((struct list_query){.limit = 20}, &more),
                        "a b ba bé b\U0010FFFF b\U0010FFFFx É ");
    assert_string_equal(page((struct list_query){.limit = 7}, &more),
                        "a b ba bé b\U0010FFFF b\U0010FFFFx É ");
    assert_string_equal(page((struct list_query){.limit = 3}, &more), "a b ba …");
    assert_string_equal(page((struct list_query){.limit = 3, .cursor = more}, &more),
                        "bé b\U0010FFFF b\U0010FFFFx …");
    assert_string_equal(page((struct list_query){.limit = 3, .cursor = more}, &more), "É ");
    assert_string_equal(page((struct list_query){.limit = 9, .prefix = BYTES("b")}, &more),
                        "b ba bé b\U0010FFFF b\U0010FFFFx ");
    assert_string_equal(page((struct list_query){.limit = 9, .prefix = BYTES("b\U0010FFFF")}, &more),
                        "b\U0010FFFF b\U0010FFFFx ");
    assert_string_equal(page((struct list_query){.limit = 9, .prefix = BYTES("c")}, &more), "");
    int64_t after = scratch_number(scratch.admin, "select max(version) from stampd.doc");
    scratch_run(scratch.admin, "select stampd.put_item('Doc', 'ba', 'Item', 'k', '2')");
    assert_string_equal(page((struct list_query){.limit = 9, .after = after}, &more), "ba ");
}

/* Few match among many: the page ends where the rows that it may read end. */
static void a_page_reads_a_bounded_number_of_rows(void **state UNUSED)
{
    scratch_run(scratch.admin, "insert into stampd.doc select 'Doc', to_char(n, 'FM00000'), 100 + n, case "
                               "when n % 9000 = 5 then 1 else 0 end,"
                               " 0, 0, 0 from generate_series(1, 25000) n");
    struct bytes more;
    assert_string_equal(page((struct list_query){.limit = 9}, &more), "00005 09005 …");
    assert_true(bytes_equal(more, BYTES("10000")));
    assert_string_equal(page((struct list_query){.limit = 9, .cursor = more}, &more), "18005 …");
    assert_true(bytes_equal(more, BYTES("20000")));
    assert_string_equal(page((struct list_query){.limit = 9, .cursor = more}, &more), "");
    assert_string_equal(page((struct list_query){.limit = 1, .cursor = BYTES("08000")}, &more), "09005 …");
    assert_string_equal(page((struct list_query){.limit = 9, .after = 9000}, &more), "09005 …");
}

/* Names of a page of classes, joined. */
static const char *classes_above(const char *cursor, int32_t limit)
{
    struct bytes *classes;
    size_t found;
    assert_int_equal(store_list_classes(store, scratch.ns, arena, bytes_of(cursor), limit, &classes, &found),
                     FAULT_NONE);
    const char *text = "";
    for (size_t i = 0; i < found; i++)
        text = arena_printf(arena, "%s%.*s ", text, (int)classes[i].size, classes[i].data);
    return text;
}

static void classes_are_found_by_steps_along_the_index(void **state UNUSED)
{
    assert_string_equal(classes_above("", 9), "");
    scratch_run(scratch.admin, "insert into stampd.doc select c, to_char(n, 'FM0000'), 100 + n, 1, 0, 0, 0"
                               " from unnest(array['B', 'a', 'A', 'C1']) c, generate_series(1, 2000) n");
    assert_string_equal(classes_above("", 9), "A B C1 a ");
    assert_string_equal(classes_above("", 2), "A B ");
    assert_string_equal(classes_above("B", 2), "C1 a ");
    assert_string_equal(classes_above("B", 1), "C1 ");
    assert_string_equal(classes_above("a", 9), "");
    /* planned as the sessions of workers do: two looks into the index, no row read in vain */
    struct pg *pg = scratch_connect(&scratch);
    scratch_run(pg, arena_printf(arena,
                                 "set search_path = stampd; set plan_cache_mode = force_generic_plan;"
                                 " set enable_seqscan = off; set enable_hashjoin = off;"
                                 " set enable_mergejoin = off; prepare classes as %s;"
                                 " create temp table plan (line text); do $$ declare line text; begin"
                                 " for line in execute 'explain execute classes('''', 9)' loop"
                                 " insert into plan values (line); end loop; end $$",
                                 statements[STATEMENT_CLASSES].sql));
    assert_int_equal(
        scratch_number(pg, "select count(*) from plan where line like '%using doc_pkey on doc%'"), 2);
    assert_int_equal(scratch_number(pg, "select count(*) from plan where line like '%Seq Scan%'"), 0);
    pg_close(pg);
}

/* A claim may come a second early: the time that it was for is not the next one too. */
static void a_turn_that_began_early_is_followed_by_the_next(void **state UNUSED)
{
    enum fault fault;
    struct task_fence fence = {.id = BYTES("periodical"),
                               .claim = 401121042459200,
                               .period = BYTES("D0425"),
                               .start = 401121042500000};
    struct change change = {.commit = {.fences = &fence, .fence_count = 1, .stop = 401121042459400}};
    scratch_run(scratch.admin, "select stampd.cron_set('Rule', 'Op', 'D0425');"
                               " insert into stampd.taskqueue (taskid, opname, param, startat, starttime,"
                               " holder, created, cron, plan) values ('periodical', 'Op', '{}',"
                               " 401121042500000, 401121042459200, 'x', 1, 'Rule', 'D0425 UTC')");
    assert_int_equal(commit(&change, &fault), COMMIT_DONE);
    assert_int_equal(scratch_number(scratch.admin, "select startat from stampd.taskqueue"), 401122042500000);
    assert_int_equal(count("taskqueue where starttime is null and plan = 'D0425 UTC'"), 1);
    assert_int_equal(commit(&change, &fault), COMMIT_REFUSED);
    assert_int_equal(fault, FAULT_FENCED);
    assert_int_equal(count("task_history"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_document_goes_through_its_lives, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_copy_is_brought_up_to_date, open_all, close_all),
        cmocka_unit_test_setup_teardown(tombstones_are_purged, open_all, close_all),
        cmocka_unit_test_setup_teardown(many_are_loaded_at_once, open_all, close_all),
        cmocka_unit_test_setup_teardown(moved_documents_are_named, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_birth_stays_above_the_floor, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_birth_by_hand_is_a_refusal, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_lock_not_given_is_a_refusal, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_read_outlives_its_session, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_commit_is_never_repeated, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_snapshot_is_of_one_instant, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_missing_database_is_not_asked_for_again_at_once, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(the_session_used_least_makes_room, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_request_that_has_had_its_session_stays, open_all, close_all),
        cmocka_unit_test_setup_teardown(lists_go_page_by_page, open_all, close_all),
        cmocka_unit_test_setup_teardown(classes_are_found_by_steps_along_the_index, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_page_reads_a_bounded_number_of_rows, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_turn_that_began_early_is_followed_by_the_next, open_all, close_all),
    };
    char database[48];
    snprintf(database, sizeof database, "check_store_%d", (int)getpid());
    scratch_open(&scratch, database, 1);
    scratch.settings.lock_timeout_ms = 300;
    segment_join(scratch.segment, scratch.indexes[0]);
    int failed = cmocka_run_group_tests_name("store on a server", tests, NULL, NULL);
    scratch_close(&scratch);
    return failed;
}
