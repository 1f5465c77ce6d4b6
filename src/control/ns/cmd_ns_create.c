/* cmd_ns_create: `ns create` and `ns drop`.  Every step first checks whether it is done, so that a second run
 * completes an interrupted one. */
#include "control/ns/cmd_ns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/files/stored_files.h"
#include "control/nginx/map.h"
#include "control/message.h"
#include "control/ns/migrations.h"
#include "control/ns/ns_keys.h"
#include "control/resource_store.h"
#include "control/ns/ns_registry.h"
#include "blob/blob_store.h"
#include "edge/http.h"
#include "model/document/item.h"

struct creation {
    struct control *control;
    const char *code;
    const char *database; /* wanted; NULL: the recorded or the usual one */
    const char *cell;     /* wanted; NULL: the recorded one, or that of z */
    const char *name;     /* of the database, without its cell */
    const char *access;   /* wanted; NULL: the recorded one or closed */
    bool is_encrypted;
    const char *id_classes; /* wanted, separated by commas; NULL: none, or those that it has */
    struct bytes text;      /* recorded */
};

/* --- create --- */

static bool is_z(const char *code)
{
    return strcmp(code, "z") == 0;
}

/* Chooses the name of the database from the record, the command line and the settings. */
static bool choose_database(struct creation *creation, const struct namespace_conf *confs, size_t count)
{
    const struct namespace_conf *present = ns_registry_find(confs, count, creation->code);
    const char *wanted = creation->database;
    struct arena *arena = creation->control->arena;
    const char *usual = is_z(creation->code) ? creation->control->settings.z_database
                                             : arena_printf(arena, "stampd_%s", creation->code);
    if (creation->cell && !is_z(creation->code)) {
        wanted = wanted ? wanted : present && *present->database ? present->database : usual;
        wanted = control_database_name(arena, wanted);
        if (*creation->cell)
            wanted = arena_printf(arena, "%s@%s", wanted, creation->cell);
    }
    if (present && !*present->database)
        present = NULL; /* malformed: it is rewritten */
    creation->text = present ? present->text : NO_BYTES;
    if (present && present->is_malformed && !creation->access)
        creation->access = "closed";
    creation->database = present ? present->database : wanted ? wanted : usual;
    if (present && wanted && strcmp(wanted, present->database) != 0)
        message_print("%s exists already, with database %s", creation->code, present->database);
    else if (is_z(creation->code) && strcmp(creation->database, usual) != 0)
        message_print("z: its database is setting z_database = %s", usual);
    else if (!namespace_is_database(creation->database))
        message_print("%s: the name of a database is made of letters, digits, _ and -, at most 63",
                      creation->database);
    else {
        for (size_t i = 0; i < count; i++)
            if (strcmp(confs[i].code, creation->code) != 0 &&
                strcmp(confs[i].database, creation->database) == 0)
                return message_refuse("%s is the database of namespace %s", creation->database,
                                      confs[i].code);
        return true;
    }
    return false;
}

/* Creates the role when it is missing: without a password it can log in only where PostgreSQL trusts the
 * system's user. */
static bool make_role(struct creation *creation, struct pg *pg)
{
    const char *role = control_worker_role(creation->control, creation->database);
    bool is_there;
    if (!ns_database_has_role(creation->control, pg, role, &is_there))
        return false;
    if (is_there)
        return true;
    if (!ns_database_execute(pg, "create role ", role, " login"))
        return false;
    printf("%s: made the role %s, without a password\n", creation->code, role);
    return true;
}

static bool make_database(struct creation *creation, struct pg *pg)
{
    bool is_there;
    if (!ns_database_exists(creation->control, pg, creation->database, &is_there))
        return false;
    if (is_there)
        return true;
    if (!ns_database_execute(pg, "create database ", creation->name,
                             " template template0 encoding 'UTF8' locale 'C.UTF-8'"))
        return false;
    printf("%s: made the database %s\n", creation->code, creation->database);
    return true;
}

static bool alter_role(struct creation *creation, struct pg *pg, const char *role, const char *setting)
{
    struct builder sql = {0};
    builder_add_text(&sql, " in database ");
    pg_add_identifier(&sql, bytes_of(creation->name));
    builder_printf(&sql, " set %s", setting);
    builder_add(&sql, "", 1);
    bool is_done = ns_database_execute(pg, "alter role ", role, sql.data);
    builder_free(&sql);
    return is_done;
}

/* Only the workers' role may connect, besides the owner. */
static bool give_rights(struct creation *creation, struct pg *pg)
{
    struct pg_result *result;
    struct builder sql = {0};
    const char *role = control_worker_role(creation->control, creation->database);
    builder_add_text(&sql, " to ");
    pg_add_identifier(&sql, bytes_of(role));
    builder_add(&sql, "", 1);
    bool is_done = ns_database_execute(pg, "revoke all on database ", creation->name, " from public") &&
                   ns_database_execute(pg, "grant connect on database ", creation->name, sql.data) &&
                   control_query(creation->control, pg, "asking for the role's rights",
                                 "select current_setting('is_superuser') = 'on'", NULL, &result);
    builder_free(&sql);
    if (!is_done)
        return false;
    /* The refusal of a commit is an error of the statement, and does not belong in PostgreSQL's log.  A named
     * search that sorts too much is to fail before the disk is full. */
    return !pg_get_bool(result, 0, 0) || (alter_role(creation, pg, role, "log_min_error_statement = panic") &&
                                          alter_role(creation, pg, role, "temp_file_limit = '1GB'"));
}

/* The migrations grant the tables' rights to the role stampd; workers of another name become its members. */
static bool join_role(struct creation *creation, struct pg *pg)
{
    const char *role = control_worker_role(creation->control, creation->database);
    return strcmp(role, "stampd") == 0 || ns_database_execute(pg, "grant stampd to ", role, "");
}

static bool check_id_classes(const char *list)
{
    struct bytes rest = bytes_of(list);
    do {
        struct bytes class = bytes_cut(&rest, ',');
        if (!item_is_class_name(class) || bytes_equal(class, BYTES("Account")))
            return message_refuse(
                "ns create: --encrypted-ids %s: expected names of classes of documents, separated by "
                "commas; those of Account cannot be encrypted",
                list);
    } while (rest.size);
    return true;
}

static int compare_classes(const void *a, const void *b)
{
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

/* The classes separated by blanks, in order, as data_keys.h has them. */
static const char *order_id_classes(struct arena *arena, const char *list)
{
    struct bytes rest = bytes_of(list ? list : "");
    struct bytes *classes = ARENA_ARRAY(arena, struct bytes, rest.size + 1);
    size_t count = 0;
    struct builder text = {0};
    while (rest.size)
        classes[count++] = bytes_cut(&rest, ',');
    qsort(classes, count, sizeof *classes, compare_classes);
    for (size_t i = 0; i < count; i++) {
        if (i && bytes_equal(classes[i], classes[i - 1]))
            continue;
        if (text.size)
            builder_add_text(&text, " ");
        builder_add_bytes(&text, classes[i]);
    }
    const char *ordered = arena_copy(arena, text.size ? text.data : "", text.size);
    builder_free(&text);
    return ordered;
}

/* Before anything is stored.  Ids are encrypted from then on, or never: servers read stored ones by the list.
 */
static bool encrypt(struct creation *creation, struct pg *pg)
{
    struct control *control = creation->control;
    struct data_keys *keys;
    if (!creation->is_encrypted)
        return true;
    const char *wanted = order_id_classes(control->arena, creation->id_classes);
    if (!ns_keys_read(control, pg, &keys))
        return false;
    if (!keys->count)
        return ns_keys_add(control, pg, wanted);
    if (!creation->id_classes || strcmp(wanted, keys->id_classes) == 0)
        return true;
    return message_refuse(
        "%s: the namespace exists, and %s%s: that cannot be changed; export it, and import it into "
        "another one",
        creation->code, *keys->id_classes ? "its ids are encrypted of " : "its ids are not encrypted",
        keys->id_classes);
}

static bool fill_database(struct creation *creation, struct pg **pg_r)
{
    enum fault fault = control_connect(creation->control, creation->database, pg_r);
    if (fault == FAULT_ODATABASE)
        message_print("%s: the database does not exist or its encoding is not UTF8", creation->database);
    return fault == FAULT_NONE && migrations_apply(creation->control, *pg_r, creation->database) &&
           join_role(creation, *pg_r) && encrypt(creation, *pg_r);
}

static bool complete_database(struct creation *creation, struct pg **own_r)
{
    struct pg *maintenance;
    struct control *control = creation->control;
    creation->name = control_database_name(control->arena, creation->database);
    return ns_database_open_cell(control, settings_cell_of(creation->database), &maintenance) &&
           make_role(creation, maintenance) && make_database(creation, maintenance) &&
           give_rights(creation, maintenance) && fill_database(creation, own_r);
}

bool cmd_ns_create_database(struct control *control, const char *code, const char *database,
                            const char *id_classes)
{
    struct pg *own;
    struct creation creation = {.control = control,
                                .code = code,
                                .database = database,
                                .is_encrypted = id_classes,
                                .id_classes = id_classes};
    return complete_database(&creation, &own);
}

static bool cmd_ns_create_record(struct creation *creation, struct pg *z)
{
    struct arena *arena = creation->control->arena;
    struct bytes text = namespace_set_member(arena, creation->text, "database", creation->database);
    if (creation->access || !creation->text.data)
        text = namespace_set_member(arena, text, "access", creation->access ? creation->access : "closed");
    if (creation->is_encrypted)
        text = namespace_set_json(arena, text, "encrypted", BYTES("true"));
    return bytes_equal(text, creation->text) || ns_registry_store(creation->control, z, creation->code, text);
}

/* A namespace that exists stays as it was created: encrypted or not. */
static bool agree_on_encryption(struct creation *creation)
{
    if (!creation->text.data)
        return true;
    const struct ns_conf conf = namespace_read(creation->control->arena, creation->text);
    if (creation->is_encrypted && !conf.is_encrypted)
        message_print("%s: the namespace exists and is not encrypted", creation->code);
    bool agrees = conf.is_encrypted || !creation->is_encrypted;
    creation->is_encrypted = conf.is_encrypted;
    return agrees;
}

static bool cmd_ns_create_create(struct creation *creation, const struct map_options *map)
{
    struct control *control = creation->control;
    struct namespace_conf *confs = NULL;
    size_t count = 0;
    struct pg *z = NULL, *alone, *own;
    /* before a database is made, which would be completed without encryption if the option is forgotten */
    if (creation->is_encrypted && !ns_keys_need_site(control))
        return false;
    if (!ns_database_open_alone(control, &alone))
        return false;
    if (is_z(creation->code)) { /* z's record of itself can be read only once z exists */
        creation->database = creation->database ? creation->database : control->settings.z_database;
        if (strcmp(creation->database, control->settings.z_database) != 0)
            return message_refuse("z: its database is setting z_database = %s", control->settings.z_database);
    } else if (!ns_registry_open(control, &z) || !ns_registry_read(control, z, &confs, &count) ||
               !choose_database(creation, confs, count) || !agree_on_encryption(creation)) {
        return false;
    }
    if (!complete_database(creation, &own))
        return false;
    if (!z) {
        z = own;
        if (!ns_registry_read(control, z, &confs, &count) || !choose_database(creation, confs, count))
            return false;
    }
    return cmd_ns_create_record(creation, z) && ns_registry_read(control, z, &confs, &count) &&
           map_write(control, map, confs, count, NULL);
}

/* --- until nginx serves it --- */

enum {
    SERVED_MOST_MS = 10000,
    SERVED_PAUSE_MS = 50,
    SERVED_IN_A_ROW =
        5, /* longer than nginx lets its former processes accept connections beside the new ones */
    STATUS_ABSENT = 404
};

/* The status of a ping over a connection of its own; 0: there is no answer. */
static int ping_created(struct creation *creation)
{
    const struct settings *settings = &creation->control->settings;
    struct http *http =
        http_open(&(struct http_options){.parallel = 1,
                                         .ca_file = *settings->queue_ca_file ? settings->queue_ca_file : NULL,
                                         .connect_timeout_ms = SERVED_MOST_MS});
    struct http_result result;
    http_run(http,
             &(struct http_request){.method = "GET",
                                    .url = arena_printf(creation->control->arena, "%s/%s/ping",
                                                        settings->queue_url, creation->code),
                                    .timeout_ms = SERVED_MOST_MS},
             &result);
    http_close(http);
    return result.status;
}

/* nginx reads the map after it has been signalled, and 404 is an answer that clients take for final.  Where
 * no nginx answers at queue_url there is nothing to wait for. */
static void await_served(struct creation *creation)
{
    int64_t begun_ms = clock_monotonic_ms();
    for (int served = 0; served < SERVED_IN_A_ROW; clock_sleep_ms(SERVED_PAUSE_MS)) {
        int status = ping_created(creation);
        if (!status)
            return;
        served = status == STATUS_ABSENT ? 0 : served + 1;
        if (clock_monotonic_ms() - begun_ms >= SERVED_MOST_MS) {
            message_print("%s: the server at queue_url = %s does not serve it yet: see nginx's error log",
                          creation->code, creation->control->settings.queue_url);
            return;
        }
    }
}

int cmd_ns_create(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "ns create", "CODE", "Create a namespace: database, schema, rights, configuration, nginx's map.",
        "Begin with the namespace z, which holds the configurations of all others.  Running the command "
        "again\n"
        "completes an interrupted run.  It connects to PostgreSQL by the setting `database`, but as the\n"
        "administrator: the user is PGUSER or the system's, the password PGPASSWORD or that of ~/.pgpass.\n");
    struct creation creation = {.control = control};
    struct map_options map = {0};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        OPTION_TEXT("database", "NAME", &creation.database, "Use this database (default: stampd_CODE)."),
        OPTION_TEXT("cell", "NAME", &creation.cell,
                    "Make the database in this cell, setting database.NAME (default: where z is)."),
        OPTION_TEXT("access", "closed|read|open|rules", &creation.access,
                    "Set what callers without a key may do: nothing (closed, the default), read (read), read "
                    "and write "
                    "(open)."),
        OPTION_FLAG("encrypted", &creation.is_encrypted,
                    "Encrypt its contents, under the site key (site_key_file)."),
        OPTION_TEXT("encrypted-ids", "CLASS[,CLASS…]", &creation.id_classes,
                    "Encrypt the ids of the documents of these classes, too.  It cannot be changed later."),
        CONTROL_ADMIN_LINE(control),
        NS_MAP_LINES(&map),
    };
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    creation.code = words[0];
    if (!ns_registry_check_code(command.name, creation.code))
        return CONTROL_WRONG;
    if (creation.access && !namespace_is_access(creation.access))
        return message_end(CONTROL_WRONG, "ns create: --access %s: expected closed, read, open or rules",
                           creation.access);
    if (creation.cell && is_z(creation.code))
        return message_end(CONTROL_WRONG, "ns create: --cell: z is in the cell of the setting database");
    if (creation.is_encrypted && is_z(creation.code))
        return message_end(CONTROL_WRONG, "ns create: --encrypted: z cannot be encrypted");
    if (creation.id_classes && !creation.is_encrypted)
        return message_end(CONTROL_WRONG, "ns create: --encrypted-ids: expected with --encrypted");
    if (creation.id_classes && !check_id_classes(creation.id_classes))
        return CONTROL_WRONG;
    if (!control_load_settings(control))
        return CONTROL_FAILED;
    if (creation.cell && !settings_conninfo_of_cell(&control->settings, creation.cell))
        return message_end(CONTROL_FAILED, "ns create: --cell %s: there is no setting database.%s",
                           creation.cell, creation.cell);
    if (!cmd_ns_create_create(&creation, &map))
        return CONTROL_FAILED;
    if (map.nginx_pid || *control->settings.nginx_reload)
        await_served(&creation);
    printf("%s: ready, database %s\n", creation.code, creation.database);
    return CONTROL_DONE;
}

/* --- drop --- */

/* The values of its documents for properties that are unique in all namespaces. */
static bool free_values(struct control *control, struct pg *z, const char *database)
{
    struct pg_result *row;
    return control_query(control, z, "freeing its unique values", "select stampd.release_database($1::text)",
                         PG_PARAMS(control->arena, PG_TEXT(bytes_of(database))), &row);
}

/* The fault has been logged. */
static bool remove_files(struct control *control, const char *database)
{
    struct blob_store *store = blob_store_open(control->settings.blob_directory, BLOB_NO_GROUP);
    enum fault fault =
        namespace_is_database(database) ? blob_store_remove_database(store, bytes_of(database)) : FAULT_NONE;
    blob_store_close(store);
    if (fault)
        message_print("%s: the files of its attachments are not removed; drop the namespace again", database);
    return !fault;
}

bool cmd_ns_drop_database(struct control *control, const char *code, const char *database)
{
    struct pg *maintenance;
    bool is_there;
    if (!ns_database_open_cell(control, settings_cell_of(database), &maintenance) ||
        !ns_database_exists(control, maintenance, database, &is_there))
        return false;
    if (is_there && !is_z(code))
        stored_files_remove_objects(control, database);
    if (!ns_database_execute(maintenance, "drop database if exists ",
                             control_database_name(control->arena, database), " with (force)"))
        return false;
    printf("%s: dropped the database %s\n", code, database);
    return remove_files(control, database);
}

/* First nginx stops sending requests there, then the data are dropped, then the record of them: an
 * interrupted run can be resumed. */
static bool cmd_ns_create_drop(struct control *control, const char *code, const struct map_options *map)
{
    struct namespace_conf *confs;
    size_t count;
    struct pg *z, *alone;
    if (!ns_database_open_alone(control, &alone) || !ns_registry_open(control, &z) ||
        !ns_registry_read(control, z, &confs, &count))
        return false;
    const struct namespace_conf *conf =
        is_z(code) ? ns_registry_find(confs, count, code) : ns_registry_require(confs, count, code);
    if (!conf && !is_z(code))
        return false;
    if (is_z(code) && count > (conf ? 1U : 0U))
        return message_refuse("z holds the configurations of others; drop them first");
    const char *database = conf ? conf->database : control->settings.z_database;
    if (!*database)
        return message_refuse("%s: its configuration names no database; `stampctl ns create %s` mends it",
                              code, code);
    if (!map_write(control, map, confs, count, code) || !cmd_ns_drop_database(control, code, database))
        return false;
    return is_z(code) || (free_values(control, z, database) && resource_store_drop(control, z, code) &&
                          ns_registry_store(control, z, code, NO_BYTES));
}

int cmd_ns_drop(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("ns drop", "CODE", "Destroy a namespace with all its documents and files.", NULL);
    struct map_options map = {0};
    bool is_sure = false;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        OPTION_FLAG("yes", &is_sure, "Confirm that all its documents are to be destroyed."),
        CONTROL_ADMIN_LINE(control),
        NS_MAP_LINES(&map),
    };
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!ns_registry_check_code(command.name, words[0]))
        return CONTROL_WRONG;
    if (!is_sure)
        return message_end(CONTROL_WRONG, "ns drop: destroys all documents of %s; say --yes", words[0]);
    return control_load_settings(control) && cmd_ns_create_drop(control, words[0], &map) ? CONTROL_DONE
                                                                                         : CONTROL_FAILED;
}
