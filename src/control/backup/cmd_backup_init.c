/* cmd_backup_init: `stampctl backup init`: every step may be repeated, so that a second run completes an
 * interrupted one. */
#include "control/backup/cmd_backup.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/backup/backup_tool.h"
#include "control/message.h"
#include "control/ns/ns_registry.h"

#define DEFAULT_NAME "stampd_backup" /* of the role, its system user and its slot */
enum { NAME_MOST = 63, SENDERS_LEAST = 3 };

struct cluster {
    struct pg *pg;
    const char *wal_level, *system, *tools;
    int64_t senders, spaces, keep_mb, timeline, segment_bytes;
};

static bool read_cluster(struct control *control, struct cluster *cluster_r)
{
    struct pg_result *row;
    if (!ns_database_open(control, &cluster_r->pg) ||
        !control_query(
            control, cluster_r->pg, "reading the settings of PostgreSQL",
            "select current_setting('wal_level'), (select system_identifier::text from"
            " pg_control_system()), '/usr/lib/postgresql/' ||"
            " current_setting('server_version_num')::int / 10000 || '/bin',"
            " current_setting('max_wal_senders')::bigint,"
            " (select count(*) from pg_tablespace where spcname not in ('pg_default', 'pg_global')),"
            " (select setting::bigint from pg_settings where name = 'max_slot_wal_keep_size'),"
            " (select timeline_id::bigint from pg_control_checkpoint()),"
            " (select setting::bigint from pg_settings where name = 'wal_segment_size')",
            NULL, &row))
        return false;
    const char **texts[] = {&cluster_r->wal_level, &cluster_r->system, &cluster_r->tools};
    for (int i = 0; i < (int)COUNT_OF(texts); i++) {
        struct bytes text = pg_get_text(row, 0, i);
        *texts[i] = arena_printf(control->arena, "%.*s", (int)text.size, text.data);
    }
    cluster_r->senders = pg_get_i64(row, 0, 3);
    cluster_r->spaces = pg_get_i64(row, 0, 4);
    cluster_r->keep_mb = pg_get_i64(row, 0, 5);
    cluster_r->timeline = pg_get_i64(row, 0, 6);
    cluster_r->segment_bytes = pg_get_i64(row, 0, 7);
    return true;
}

static bool is_suitable(const struct cluster *cluster)
{
    if (strcmp(cluster->wal_level, "minimal") == 0)
        message_print("wal_level = minimal: run `alter system set wal_level = 'replica'` and restart "
                      "PostgreSQL");
    else if (cluster->senders < SENDERS_LEAST)
        message_print("max_wal_senders = %lld: at least %d are needed, one for the log and two for a base "
                      "backup; run `alter system set max_wal_senders = 10` and restart PostgreSQL",
                      (long long)cluster->senders, SENDERS_LEAST);
    else if (cluster->spaces)
        message_print("the cluster has %lld tablespaces of its own, which this command does not back up",
                      (long long)cluster->spaces);
    else
        return true;
    return false;
}

/* Names are parts of SQL, of connection strings and of the names of files. */
static bool cmd_backup_init_is_name(const char *option, const char *name)
{
    size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (size && !name[size] && size <= NAME_MOST)
        return true;
    return message_refuse("backup init: --%s %s: expected 1 to %d of a-z, 0-9 and _", option, name,
                          NAME_MOST);
}

/* The right REPLICATION and nothing else: it reads no table by SQL. */
static bool make_role(struct control *control, struct pg *pg, const struct backup_folder *folder)
{
    bool is_there;
    struct pg_result *row;
    if (!ns_database_has_role(control, pg, folder->role, &is_there))
        return false;
    if (!is_there) {
        printf("made the role %s, with the right REPLICATION, without a password\n", folder->role);
        return ns_database_execute(pg, "create role ", folder->role, " login replication");
    }
    if (!control_query(
            control, pg, folder->role,
            "select (rolreplication or rolsuper) and rolcanlogin from pg_roles where rolname = $1::text",
            PG_PARAMS(control->arena, PG_TEXT(bytes_of(folder->role))), &row))
        return false;
    if (pg_get_bool(row, 0, 0))
        return true;
    return message_refuse(
        "the role %s exists but may not replicate: alter role %s login replication, or choose another "
        "one by --role",
        folder->role, folder->role);
}

static bool has_slot(struct control *control, struct pg *pg, const char *slot, bool *is_there_r)
{
    struct pg_result *row;
    if (!control_query(control, pg, slot,
                       "select exists (select from pg_replication_slots where slot_name = $1::text)",
                       PG_PARAMS(control->arena, PG_TEXT(bytes_of(slot))), &row))
        return false;
    *is_there_r = pg_get_bool(row, 0, 0);
    return true;
}

static bool make_slot(struct control *control, struct pg *pg, const char *slot)
{
    bool is_there;
    struct pg_result *row;
    if (!has_slot(control, pg, slot, &is_there))
        return false;
    if (is_there)
        return true;
    return control_query(control, pg, slot,
                         "select slot_name from pg_create_physical_replication_slot($1::text::name, true)",
                         PG_PARAMS(control->arena, PG_TEXT(bytes_of(slot))), &row);
}

/* A folder that this command has begun is completed; any other one must be empty. */
static bool make_folder(struct control *control, const struct cluster *cluster, struct backup_folder *folder)
{
    bool is_there;
    struct backup_folder present;
    const char *settings = arena_printf(control->arena, "%s/backup.json", folder->path);
    if (access(settings, F_OK) == 0) {
        if (!backup_folder_open(control, folder->path, &present))
            return false;
        if (strcmp(present.system, folder->system) != 0 || present.timeline != folder->timeline)
            return message_refuse(
                "%s: it is of another cluster, or from before a restore or a fail-over of this one: "
                "begin another folder",
                folder->path);
        *folder = present;
        return backup_tool_check_user(folder->user);
    }
    if (!backup_folder_is_empty(folder->path))
        return message_refuse("%s: not empty", folder->path);
    if (!backup_tool_check_user(folder->user) || !has_slot(control, cluster->pg, folder->slot, &is_there))
        return false;
    if (!is_there)
        return backup_folder_create(control, folder);
    return message_refuse(
        "the slot %s exists already, perhaps of another folder: choose another name by --slot, or drop "
        "it by select pg_drop_replication_slot('%s')",
        folder->slot, folder->slot);
}

static void drop_line(void *context, struct bytes line)
{
    (void)context;
    (void)line;
}

/* The administrator's connection proves nothing about that of the tools. */
static bool try_connection(struct control *control, const struct backup_folder *folder)
{
    const char *where =
        arena_printf(control->arena, "%s replication=true", backup_tool_conninfo(control, folder));
    const char *const words[] = {"psql", "-X", "-w", "-d", where, "-c", "IDENTIFY_SYSTEM", NULL};
    if (backup_tool_read(control, folder, words, drop_line, NULL, NULL))
        return true;
    return message_refuse(
        "the system user %s cannot connect as the role %s for replication; pg_hba.conf needs a line as "
        "\"local replication %s peer\", and a reload",
        folder->user, folder->role, folder->role);
}

static bool init(struct control *control, struct backup_folder *folder)
{
    struct cluster cluster;
    if (!read_cluster(control, &cluster) || !is_suitable(&cluster))
        return false;
    folder->system = cluster.system;
    folder->timeline = cluster.timeline;
    folder->segment_bytes = cluster.segment_bytes;
    if (!folder->tools)
        folder->tools = cluster.tools;
    if (!make_folder(control, &cluster, folder) || !make_role(control, cluster.pg, folder) ||
        !try_connection(control, folder) || !make_slot(control, cluster.pg, folder->slot))
        return false;
    if (cluster.keep_mb < 0)
        message_print(
            "note: max_slot_wal_keep_size = -1: while the log is not archived, PostgreSQL keeps it until "
            "its own disk is full; set a limit");
    printf("%s: ready.  PostgreSQL keeps the log for it from now on.  Next, as root:\n"
           "  systemctl enable --now \"$(systemd-escape --path --template=stampd-backup@.service %s)\"\n"
           "  stampctl backup run %s\n",
           folder->path, folder->path, folder->path);
    return true;
}

int cmd_backup_init(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("backup init", "FOLDER", "Prepare a folder for backups: role, replication slot, settings.",
                "The tools of PostgreSQL run as the system user of the backup, to "
                "whom FOLDER belongs, and connect as\n"
                "a role that can replicate and nothing else.  Running the command "
                "again completes an interrupted run.\n");
    struct backup_folder folder = {.user = DEFAULT_NAME, .role = DEFAULT_NAME, .slot = DEFAULT_NAME};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        OPTION_TEXT("user", "USER", &folder.user,
                    "Run the tools as this system user (default: " DEFAULT_NAME ")."),
        OPTION_TEXT("role", "ROLE", &folder.role,
                    "Connect as this role of PostgreSQL (default: " DEFAULT_NAME ")."),
        OPTION_TEXT("slot", "NAME", &folder.slot, "Name the replication slot (default: " DEFAULT_NAME ")."),
        OPTION_TEXT("tools", "FOLDER", &folder.tools,
                    "Use PostgreSQL's programs of FOLDER (default: those of the server's version)."),
        CONTROL_ADMIN_LINE(control)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!cmd_backup_init_is_name("role", folder.role) || !cmd_backup_init_is_name("slot", folder.slot))
        return CONTROL_WRONG;
    if (words[0][0] != '/')
        return message_end(CONTROL_WRONG, "backup init: %s: expected an absolute path", words[0]);
    folder.path = words[0];
    return init(control, &folder) ? CONTROL_DONE : CONTROL_FAILED;
}
