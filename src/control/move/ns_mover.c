/* ns_mover: rounds of archives, then the switch. */
#include "control/move/ns_mover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/archive/archive_replace.h"
#include "control/archive/exporter.h"
#include "control/archive/import_progress.h"
#include "control/archive/importer.h"
#include "control/message.h"
#include "control/move/move_keys.h"
#include "control/move/move_site.h"
#include "control/ns/cmd_ns.h"
#include "control/ns/ns_registry.h"
#include "control/servers.h"

enum {
    PIECE_BYTES = 4 << 20,
    LEVEL = 1,        /* of compression: fast */
    ROUNDS_MOST = 50, /* writers are faster than the copy */
    CALM_MS = 1000,   /* a round that takes no longer is the last before the switch */
};

struct move {
    struct control *from, *to;
    const struct ns_mover_options *options;
    const char *base, *next, *state, *key, *former; /* paths */
    struct bytes archive_key;                       /* NO_BYTES: the namespace is not encrypted */
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

/* The folder may be that of another move. */
static bool is_former(struct move *move, const char *former)
{
    if (strcmp(former, move->to->place) == 0)
        return message_refuse("%s: %s is the present database of %s", move->former, former,
                              move->options->code);
    return cmd_ns_is_free(move->from, former, move->options->code);
}

/* The database of a namespace that has moved to another cell. */
static bool drop_former(struct move *move)
{
    struct bytes text;
    struct control *control = move->from;
    if (!control_read_file(control->arena, move->former, &text))
        return false;
    const char *former = arena_copy(control->arena, text.data, text.size);
    if (!is_former(move, former))
        return false;
    if (move->options->drops_former)
        return cmd_ns_drop_database(control, move->options->code, former);
    printf("%s: the former database %s stays, and cannot be written to: drop it when all is well\n",
           move->options->code, former);
    return true;
}

/* The configuration names the other database: what is left is to open it.  Nobody needs the record of the
 * import from there on. */
static bool open_in_place(struct move *move)
{
    enum ns_state state;
    return find_state(move, &state) &&
           cmd_ns_place(move->from, move->options->code, NULL, move->options->map) &&
           move_site_thaw(move->to, &move->target) &&
           cmd_ns_set_state(move->from, move->options->code, state, NULL) &&
           import_progress_end(move->target.pg);
}

/* One commit in z moves it.  Until all servers obey it, both databases have the same, and neither can be
 * written to by a server: no client reads in one what another has changed in the other. */
static bool place_there(struct move *move)
{
    return move_site_freeze(move->to, &move->target) &&
           cmd_ns_place(move->from, move->options->code, move->to->place, move->options->map) &&
           open_in_place(move);
}

/* Here it is gone, and all servers here obey, before it is opened there: no client reads here what another
 * has changed there. */
static bool hand_over(struct move *move)
{
    if (move->to->place)
        return place_there(move);
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
    move->former = arena_printf(arena, "%s/former", folder);
    if (mkdir(folder, 0700) == 0 || errno == EEXIST)
        return true;
    return message_refuse("%s: %s", folder, strerror(errno));
}

static bool keep_word(struct move *move, const char *path, const char *word)
{
    return is_there(path) || control_write_file(move->from->arena, path, bytes_of(word), 0600);
}

/* The former database is known: nothing has moved yet.  The state may be that of an earlier run. */
static bool keep_state(struct move *move)
{
    const struct namespace_conf *conf = move->source.conf;
    return (!move->to->place ||
            control_write_file(move->from->arena, move->former, bytes_of(conf->database), 0600)) &&
           keep_word(move, move->state, namespace_state_word(conf->state));
}

static void remove_archives(const struct move *move)
{
    unlink(move->base);
    unlink(move->next);
    unlink(move->state);
    unlink(move->key);
    unlink(move->former);
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

/* The database in the other cell, empty, with the keys that it needs to be given others. */
static bool make_place(struct move *move)
{
    const char *code = move->options->code;
    const char *classes;
    return cmd_ns_is_free(move->from, move->to->place, code) &&
           move_keys_find_classes(move->from, move->source.pg, &classes) &&
           cmd_ns_create_database(move->to, code, move->to->place, classes);
}

/* It is open.  The folder stays until the former database is dropped: the command goes on with it. */
static bool end_move(struct move *move)
{
    if (move->to->place && !drop_former(move))
        return false;
    remove_archives(move);
    return true;
}

static bool has_arrived(const struct move *move)
{
    return move->to->place && strcmp(move->source.conf->database, move->to->place) == 0;
}

/* A run that was interrupted behind the commit in z; that has arrived long ago otherwise. */
static bool finish_arrived(struct move *move)
{
    struct import_progress progress;
    bool is_moving;
    move->target = move->source;
    if (!import_progress_read(move->from, move->target.pg, &is_moving, &progress) || !ns_mover_prepare(move))
        return false;
    if (is_moving && import_progress_followed(&progress))
        return open_in_place(move);
    if (!is_moving && is_there(move->former)) /* it is open */
        return true;
    rmdir(move->options->folder);
    return message_refuse("%s is in this cell already, database %s", move->options->code,
                          move->source.conf->database);
}

bool ns_mover_run(struct control *from, struct control *to, const struct ns_mover_options *options)
{
    struct move move = {.from = from, .to = to, .options = options};
    if (!ns_registry_connect(from, options->code, &move.source))
        return false;
    if (has_arrived(&move))
        return finish_arrived(&move) && end_move(&move);
    if ((to->place && !make_place(&move)) || !ns_registry_connect(to, options->code, &move.target) ||
        (to->place && !move_site_thaw(to, &move.target)) ||
        !move_site_check(from, &move.source, to, &move.target) || !ns_mover_prepare(&move) ||
        !move_keys_of_archives(from, &move.source, move.key, &move.archive_key) || !move_all(&move))
        return false;
    return end_move(&move);
}

bool ns_mover_abandon(struct control *from, const struct ns_mover_options *options)
{
    struct move move = {.from = from, .options = options};
    enum ns_state state;
    if (!ns_registry_connect(from, options->code, &move.source) || !ns_mover_prepare(&move) ||
        !find_state(&move, &state))
        return false;
    struct import_progress progress;
    bool is_moving;
    if (!import_progress_read(from, move.source.pg, &is_moving, &progress))
        return false;
    if (is_moving && import_progress_followed(&progress))
        return message_refuse("%s has moved to this cell: run the command without --abandon", options->code);
    if (move.source.conf->state == NS_GONE)
        return message_refuse(
            "%s is gone here, and may be open on the other site: run the command without --abandon",
            options->code);
    if (!move_site_thaw(from, &move.source) || !cmd_ns_set_state(from, options->code, state, NULL))
        return false;
    remove_archives(&move);
    printf("%s: open again; drop it on the other site, or its database in the other cell\n", options->code);
    return true;
}
