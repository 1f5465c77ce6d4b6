/* cmd_ns_move: `stampctl ns move`: options. */
#include "control/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/coding/hex.h"
#include "control/archive/archive_replace.h"
#include "control/archive/exporter.h"
#include "control/archive/import_progress.h"
#include "control/archive/importer.h"
#include "control/message.h"
#include "control/move/move_site.h"
#include "control/ns/cmd_ns.h"
#include "control/ns/ns_keys.h"
#include "control/ns/ns_registry.h"
#include "control/servers.h"
#include "edge/crypto/crypto.h"
#include "seal/site_key.h"

/* The data keys of an encrypted namespace, carried over to another site, whose site key wraps them
 * there: so all that is encrypted, hashed or named by them stays what it is. */

enum { ID, SITE, WRAPPED, DATABASE, ID_CLASSES }; /* columns of data_keys_statement */
enum { SECRET_BYTES = 32 };
static const struct bytes kind = BYTES("move archives");
static const char what[] = "carrying the data keys over";

struct moved_key {
    int64_t id;
    unsigned char secret[SEALING_KEY];
};
struct moved_keys {
    struct moved_key *keys;
    size_t count;
    struct bytes id_classes; /* whose ids are encrypted */
};

static void move_keys_forget(void *context)
{
    struct moved_keys *keys = context;
    if (keys->count)
        explicit_bzero(keys->keys, keys->count * sizeof *keys->keys);
}

static bool move_keys_read_keys(struct control *control, struct pg *pg, struct moved_keys *keys_r)
{
    struct pg_result *rows;
    struct moved_keys *keys = ARENA_NEW(control->arena, struct moved_keys);
    if (!control_query(control, pg, what, data_keys_statement()->sql, NULL, &rows) ||
        (pg_rows(rows) && !ns_keys_load_site(control)))
        return false;
    *keys = (struct moved_keys){.count = (size_t)pg_rows(rows)};
    keys->keys = ARENA_ARRAY(control->arena, struct moved_key, keys->count + 1);
    if (keys->count)
        keys->id_classes = pg_get_text(rows, 0, ID_CLASSES);
    arena_defer(control->arena, move_keys_forget, keys);
    *keys_r = *keys;
    for (int row = 0; row < pg_rows(rows); row++) {
        keys->keys[row].id = pg_get_i64(rows, row, ID);
        if (site_key_unwrap(control->arena, pg_get_text(rows, row, SITE), pg_get_text(rows, row, DATABASE),
                            keys->keys[row].id, pg_get_text(rows, row, WRAPPED), keys->keys[row].secret))
            continue;
        return message_refuse("%s: a data key cannot be unwrapped by the site key of the settings", what);
    }
    return true;
}

/* How many of the first keys are the same. */
static size_t count_same(const struct moved_keys *one, const struct moved_keys *other)
{
    size_t count = 0;
    while (count < one->count && count < other->count && one->keys[count].id == other->keys[count].id &&
           memcmp(one->keys[count].secret, other->keys[count].secret, SEALING_KEY) == 0)
        count++;
    return count;
}

static bool is_unused(struct control *control, struct pg *pg)
{
    static const char sql[] =
        "select exists (select from stampd.doc) or exists (select from stampd.taskqueue)"
        " or exists (select from stampd.idempotency) or exists (select from stampd.subscription)"
        " or exists (select from stampd.blob) or exists (select from stampd.cron)";
    struct pg_result *row;
    if (!control_query(control, pg, what, sql, NULL, &row))
        return false;
    if (pg_get_bool(row, 0, 0))
        message_print(
            "the namespace there has data keys of its own, and has been used: drop it there, and create "
            "it again");
    return !pg_get_bool(row, 0, 0);
}

static bool move_keys_add(struct control *to, struct pg *pg, const struct moved_key *key)
{
    struct pg_result *row;
    if (!control_query(to, pg, what, "select current_database()::text", NULL, &row))
        return false;
    struct bytes wrapped = site_key_wrap(to->arena, pg_get_text(row, 0, 0), key->id, key->secret);
    return control_query(
        to, pg, what,
        "insert into stampd.data_key (id, site, wrapped) values ($1::bigint, $2, $3)"
        " returning id",
        PG_PARAMS(to->arena, PG_I64(key->id), PG_TEXT(bytes_of(site_key_mark())), PG_TEXT(wrapped)), &row);
}

/* Servers there read the keys again with the schema; those of sessions that have begun are not used again. */
static bool move_keys_store(struct control *to, const struct ns_target *target, const struct moved_keys *keys,
                            size_t same, bool is_replaced)
{
    struct pg *pg = target->pg;
    bool is_done =
        !is_replaced || (is_unused(to, pg) && control_execute(pg, what, "delete from stampd.data_key"));
    for (size_t i = same; i < keys->count && is_done; i++)
        is_done = move_keys_add(to, pg, &keys->keys[i]);
    return is_done &&
           control_execute(pg, what, "update stampd.schema set number = number + 1 where one; commit") &&
           (!is_replaced || move_site_end_sessions(to, target));
}

/* The namespace there has all keys of the one here afterwards.  In place of its own, if it has any, it must
 * be unused.  Nothing happens when neither is encrypted.  On failure reports why. */
MUST_USE static bool move_keys_carry(struct control *from, const struct ns_target *source, struct control *to,
                                     const struct ns_target *target)
{
    struct moved_keys here, there;
    if (!move_keys_read_keys(from, source->pg, &here) ||
        !control_execute(target->pg, what, "begin; lock stampd.data_key") ||
        !move_keys_read_keys(to, target->pg, &there))
        return false;
    const size_t same = count_same(&here, &there);
    bool is_replaced = same < there.count && same < here.count;
    bool is_done = false;
    if (!here.count != !there.count)
        message_print("the namespace is encrypted on one of the sites only: create it there %s --encrypted",
                      here.count ? "with" : "without");
    else if (!bytes_equal(here.id_classes, there.id_classes))
        message_print(
            "the ids of other classes are encrypted there: drop it there, and create it again%s%.*s",
            here.id_classes.size ? " with --encrypted-ids of " : " without --encrypted-ids",
            (int)here.id_classes.size, here.id_classes.data);
    else if (same == here.count)
        is_done = true;
    else
        return move_keys_store(to, target, &here, is_replaced ? 0 : same, is_replaced);
    /* A former run may have replaced the keys, and have ended before it ended the sessions. */
    return control_execute(target->pg, what, "rollback") && is_done &&
           (!here.count || move_site_end_sessions(to, target));
}

/* --- archives --- */

static bool draw(struct control *from, const char *path, struct bytes *key_r)
{
    unsigned char random[SECRET_BYTES];
    char *text = ARENA_ROOM(from->arena, char, 2 * SECRET_BYTES + 1);
    crypto_random(random, sizeof random);
    hex_write(random, sizeof random, text);
    explicit_bzero(random, sizeof random);
    text[2 * SECRET_BYTES] = '\0';
    *key_r = bytes_of(text);
    return control_write_file(from->arena, path, site_key_seal(from->arena, kind, *key_r), 0600);
}

/* The secret of the archives in the folder of the move, which only the site key here opens; drawn by the
 * first call, and kept in the file `path`.  NO_BYTES: the namespace is not encrypted.  On failure reports
 * why. */
MUST_USE static bool move_keys_of_archives(struct control *from, const struct ns_target *source,
                                           const char *path, struct bytes *key_r)
{
    struct data_keys *keys;
    struct bytes text;
    *key_r = NO_BYTES;
    if (!ns_keys_read(from, source->pg, &keys))
        return false;
    if (!keys->count)
        return true;
    if (access(path, F_OK) != 0)
        return draw(from, path, key_r);
    if (!control_read_file(from->arena, path, &text))
        return false;
    if (site_key_open(from->arena, kind, text, key_r))
        return true;
    return message_refuse("%s: it was made under another site key", path);
}

/* --- the move --- */

/* Moves a namespace to another site, with its own PostgreSQL, z and stampd, while it is served:
 * copies all documents, then what has changed meanwhile, again and again; then nothing is changed for the
 * seconds that the rest takes.
 *
 * Interrupted at any point, it goes on when it is run again.  The folder has two archives: `base`, which the
 * namespace there has, and `next`, which it gets; and the state that the namespace had, which a move that was
 * interrupted has changed. */

struct ns_mover_options {
    const char *code;
    const char *folder;  /* for archives; is made */
    const char *message; /* to callers of the former site, when it has moved */
};

enum {
    PIECE_BYTES = 4 << 20,
    LEVEL = 1,        /* of compression: fast */
    ROUNDS_MOST = 50, /* writers are faster than the copy */
    CALM_MS = 1000,   /* a round that takes no longer is the last before the switch */
};

struct move {
    struct control *from, *to;
    const struct ns_mover_options *options;
    const char *base, *next, *state, *key; /* paths */
    struct bytes archive_key;              /* NO_BYTES: the namespace is not encrypted */
    struct ns_target source, target;
};

static const char moving[] = "The namespace is moving to another server; it is back in a moment.";

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* A control with an arena of its own: its connections end with it. */
static struct control part_of(const struct control *control)
{
    struct control part = *control;
    part.arena = arena_create("move");
    return part;
}

/* --- archives --- */

/* `since` NULL: all documents. */
static bool export(struct move *move, const char *since, const char *path, int64_t *documents_r)
{
    struct control control = part_of(move->from);
    struct ns_target source;
    struct exporter_report report;
    const struct exporter_options options = {
        .archive = {.path = path, .level = LEVEL, .key = move->archive_key},
        .since = since,
        .piece_bytes = PIECE_BYTES};
    bool is_done = ns_registry_connect(&control, move->options->code, &source) &&
                   exporter_run(&control, &source, &options, &report);
    if (is_done)
        *documents_r = report.sum.documents + report.sum.deleted;
    arena_destroy(control.arena);
    return is_done;
}

static bool has_identity(struct arena *arena, const char *path, struct bytes key, const char *wanted)
{
    struct archive_contents contents;
    return is_there(path) && archive_verify(arena, path, key, false, &contents) &&
           strcmp(archive_identity(arena, &contents), wanted) == 0;
}

/* --- all documents --- */

static bool copy_all(struct move *move)
{
    const struct importer_options options = {
        .code = move->options->code, .path = move->base, .key = move->archive_key, .stays_off = true};
    int64_t documents;
    if (!is_there(move->base) && !export(move, NULL, move->base, &documents))
        return false;
    struct control control = part_of(move->to);
    bool is_done = importer_run(&control, &options);
    arena_destroy(control.arena);
    return is_done;
}

/* How far earlier runs have come.  Then `base` becomes the archive that the namespace there has. */
enum stage { STAGE_NONE, STAGE_COPIED, STAGE_OPENS, STAGE_WRONG };
static enum stage find_stage(struct move *move)
{
    struct import_progress progress;
    const char *const paths[] = {move->base, move->next};
    bool has_begun;
    if (!import_progress_read(move->to, move->target.pg, &has_begun, &progress))
        return STAGE_WRONG;
    if (!has_begun && move->source.conf->state == NS_GONE) {
        message_print("%s is gone here: it has moved already", move->options->code);
        return STAGE_WRONG;
    }
    if (has_begun && import_progress_opens(&progress))
        return STAGE_OPENS;
    const char *followed = has_begun ? import_progress_followed(&progress) : NULL;
    if (!followed)
        return STAGE_NONE; /* an import that was interrupted goes on */
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        if (has_identity(move->to->arena, paths[i], move->archive_key, followed) &&
            (i == 0 || rename(move->next, move->base) == 0))
            return STAGE_COPIED;
    message_print(
        "%s does not have the archive that %s was copied from: name the folder of the first run, or drop "
        "the namespace there and begin again",
        move->options->folder, move->options->code);
    return STAGE_WRONG;
}

/* --- what has changed since --- */

static bool apply(struct move *move)
{
    struct control control = part_of(move->to);
    struct ns_target target;
    struct archive_contents contents;
    bool is_done =
        archive_verify(control.arena, move->next, move->archive_key, false, &contents) &&
        ns_registry_connect(&control, move->options->code, &target) &&
        archive_replace_files(&control, &target, move->next, &contents) &&
        control_execute(target.pg, "storing documents", "begin; set local statement_timeout = 0") &&
        archive_replace_run(&control, target.pg, move->next, &contents) &&
        import_progress_follow(&control, target.pg, &contents) &&
        control_execute(target.pg, "storing documents", "commit");
    arena_destroy(control.arena);
    if (is_done && rename(move->next, move->base) != 0) {
        message_print("%s: %s", move->base, strerror(errno));
        is_done = false;
    }
    return is_done;
}

static bool catch_up_once(struct move *move, int64_t *spent_ms_r)
{
    int64_t since_ms = clock_monotonic_ms(), documents;
    if (!export(move, move->base, move->next, &documents) || !apply(move))
        return false;
    *spent_ms_r = clock_monotonic_ms() - since_ms;
    printf("%s: %lld changed documents copied in %lld ms\n", move->options->code, (long long)documents,
           (long long)*spent_ms_r);
    return true;
}

static bool catch_up(struct move *move)
{
    int64_t spent_ms;
    for (int round = 0; round < ROUNDS_MOST; round++) {
        if (!catch_up_once(move, &spent_ms))
            return false;
        if (spent_ms <= CALM_MS)
            break;
    }
    return true;
}

/* --- the switch --- */

static bool find_state(struct move *move, enum ns_state *state_r)
{
    struct bytes word;
    if (!control_read_file(move->from->arena, move->state, &word))
        return false;
    if (namespace_find_state(arena_copy(move->from->arena, word.data, word.size), state_r))
        return true;
    return message_refuse("%s: expected the state of a namespace", move->state);
}

static bool configure(struct move *move)
{
    const struct importer_options options = {
        .code = move->options->code, .path = move->base, .key = move->archive_key};
    struct control control = part_of(move->to);
    struct archive_contents contents;
    bool is_done = archive_verify(control.arena, move->base, move->archive_key, false, &contents) &&
                   importer_configure(&control, &options, &contents);
    arena_destroy(control.arena);
    return is_done;
}

/* Nothing is written here any more; the rest follows. */
static bool ns_mover_complete(struct move *move)
{
    int64_t spent_ms;
    return move_site_freeze(move->from, &move->source) && catch_up_once(move, &spent_ms) && configure(move) &&
           move_keys_carry(move->from, &move->source, move->to, &move->target) &&
           move_site_carry(move->from, &move->source, move->to, &move->target) &&
           move_site_compare(move->from, &move->source, move->to, &move->target);
}

static bool open_there(struct move *move)
{
    enum ns_state state;
    return find_state(move, &state) &&
           control_execute(move->target.pg, "notifying the servers", "select pg_notify('stampd', 'all')") &&
           servers_await(move->to, move->target.pg) &&
           cmd_ns_set_state(move->to, move->options->code, state, NULL) &&
           import_progress_end(move->target.pg);
}

/* Here it is gone, and all servers here obey, before it is opened there: no client reads here what another
 * has changed there. */
static bool hand_over(struct move *move)
{
    if (!cmd_ns_set_state(move->from, move->options->code, NS_GONE, move->options->message))
        return false;
    return import_progress_open(move->target.pg) && open_there(move);
}

static bool switch_over(struct move *move)
{
    int64_t since_ms = clock_monotonic_ms();
    if (!cmd_ns_set_state(move->from, move->options->code, NS_READONLY, moving) || !ns_mover_complete(move) ||
        !hand_over(move))
        return message_refuse("%s is not open: run the command again, or with --abandon to open it here",
                              move->options->code);
    int64_t spent_ms = clock_monotonic_ms() - since_ms;
    printf("%s: moved; nothing could be changed for %lld.%lld s\n", move->options->code,
           (long long)(spent_ms / 1000), (long long)(spent_ms / 100 % 10));
    return true;
}

/* --- in order --- */

static bool ns_mover_prepare(struct move *move)
{
    struct arena *arena = move->from->arena;
    const char *folder = move->options->folder;
    move->base = arena_printf(arena, "%s/base.tar.zst", folder);
    move->next = arena_printf(arena, "%s/next.tar.zst", folder);
    move->state = arena_printf(arena, "%s/state", folder);
    move->key = arena_printf(arena, "%s/key", folder);
    if (mkdir(folder, 0700) == 0 || errno == EEXIST)
        return true;
    return message_refuse("%s: %s", folder, strerror(errno));
}

static bool keep_state(struct move *move)
{
    const char *word = namespace_state_word(move->source.conf->state);
    return is_there(move->state) || control_write_file(move->from->arena, move->state, bytes_of(word), 0600);
}

static void remove_archives(const struct move *move)
{
    unlink(move->base);
    unlink(move->next);
    unlink(move->state);
    unlink(move->key);
    rmdir(move->options->folder);
}

static bool move_all(struct move *move)
{
    switch (find_stage(move)) {
    case STAGE_NONE:
        return keep_state(move) && move_keys_carry(move->from, &move->source, move->to, &move->target) &&
               copy_all(move) && catch_up(move) && switch_over(move);
    case STAGE_COPIED:
        return catch_up(move) && switch_over(move);
    case STAGE_OPENS:
        return open_there(move);
    case STAGE_WRONG:
        break;
    }
    return false;
}

/* Reports what it does, and on failure why. */
static bool ns_mover_run(struct control *from, struct control *to, const struct ns_mover_options *options)
{
    struct move move = {.from = from, .to = to, .options = options};
    if (!ns_registry_connect(from, options->code, &move.source) ||
        !ns_registry_connect(to, options->code, &move.target) ||
        !move_site_check(from, &move.source, to, &move.target) || !ns_mover_prepare(&move) ||
        !move_keys_of_archives(from, &move.source, move.key, &move.archive_key) || !move_all(&move))
        return false;
    remove_archives(&move);
    return true;
}

/* Opens the namespace again where it was. */
static bool ns_mover_abandon(struct control *from, const struct ns_mover_options *options)
{
    struct move move = {.from = from, .options = options};
    enum ns_state state;
    if (!ns_registry_connect(from, options->code, &move.source) || !ns_mover_prepare(&move) ||
        !find_state(&move, &state))
        return false;
    if (move.source.conf->state == NS_GONE)
        return message_refuse(
            "%s is gone here, and may be open on the other site: run the command without --abandon",
            options->code);
    if (!move_site_thaw(from, &move.source) || !cmd_ns_set_state(from, options->code, state, NULL))
        return false;
    remove_archives(&move);
    printf("%s: open again; drop it on the other site\n", options->code);
    return true;
}

/* --- the command --- */

struct move_words {
    const char *to, *to_admin_conninfo, *folder, *message;
    bool is_abandoned;
};

static bool cmd_ns_move_are_right(const struct move_words *words, const char *code)
{
    if (strcmp(code, "z") == 0)
        message_print("ns move: z has the configurations of the other namespaces, and is not moved");
    else if (!words->to && !words->is_abandoned)
        message_print("ns move: name the settings of the other site: --to FILE");
    else if (words->is_abandoned && (words->to || words->message))
        message_print("ns move: --abandon goes with --folder only");
    else
        return true;
    return false;
}

static bool cmd_ns_move_run(struct control *control, const struct move_words *words, const char *code)
{
    struct control to = {
        .arena = control->arena, .config = words->to, .admin_conninfo = words->to_admin_conninfo};
    const struct ns_mover_options options = {
        .code = code,
        .folder = words->folder ? words->folder : arena_printf(control->arena, "%s.move", code),
        .message = words->message ? words->message : "The namespace has moved to another server.",
    };
    if (words->is_abandoned)
        return ns_mover_abandon(control, &options);
    bool is_moved = control_load_settings(&to) && ns_mover_run(control, &to, &options);
    if (to.has_settings)
        settings_free(&to.settings);
    return is_moved;
}

int cmd_ns_move(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND_OF(
        "ns move", "CODE --to FILE", 1, 1, "Move a namespace to another site while it is served.",
        "The other site has its own PostgreSQL, namespace z and servers; FILE is a copy of its settings, and "
        "the\n"
        "namespace has been created there, empty.  All documents are copied, then what has changed "
        "meanwhile,\n"
        "again and again; then the namespace is read-only for the seconds that the rest takes, gone here "
        "and\n"
        "open there.  Clients keep their copies.  After an interruption run the same command again.\n");
    struct move_words move = {0};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        OPTION_TEXT("to", "FILE", &move.to, "Read the settings of the other site from FILE."),
        OPTION_TEXT("to-admin-conninfo", "CONNINFO", &move.to_admin_conninfo,
                    "Connect to PostgreSQL of the other site as administrator with this string."),
        OPTION_TEXT("folder", "FOLDER", &move.folder,
                    "Keep archives here meanwhile (default: CODE.move); they are as secret as the database."),
        OPTION_TEXT("message", "TEXT", &move.message, "Tell callers of the former site this."),
        OPTION_FLAG("abandon", &move.is_abandoned, "Open the namespace here again."),
    };
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!cmd_ns_move_are_right(&move, words[0]))
        return CONTROL_WRONG;
    return cmd_ns_move_run(control, &move, words[0]) ? CONTROL_DONE : CONTROL_FAILED;
}
