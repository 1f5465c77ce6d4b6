/* cmd_doctor: `stampctl doctor`: is the installation well?  It adds to check-config and backup check what
 * only root sees. */
#include "control/control.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/folder_reach.h"
#include "control/ns/ns_registry.h"
#include "control/record.h"
#include "edge/mapping.h"

/* What the parts of `stampctl doctor` share: the report, one line a finding. */

struct doctor {
    struct control *control; /* with settings */
    bool is_json, is_well;   /* well: nothing has been found to be wrong */
    int64_t free_percent;    /* a disk should have so much free */
};

/* What should be changed soon, or what is wrong now. */
enum doctor_kind { DOCTOR_WARN, DOCTOR_FAIL };

/* Prints OK and `good` if it is well, else the kind and `bad`, which says what to do. */
static void doctor_find(struct doctor *doctor, enum doctor_kind kind, bool is_well, const char *good,
                        const char *bad)
{
    const char *word = is_well ? "OK" : kind == DOCTOR_WARN ? "WARN" : "FAIL", *text = is_well ? good : bad;
    struct record record = {0};
    if (doctor->is_json) {
        record_add_word(&record, "result", word);
        record_add_word(&record, "text", text);
        record_print(&record);
    } else {
        printf("%-4s  %s\n", word, text);
    }
    doctor->is_well = doctor->is_well && (is_well || kind == DOCTOR_WARN);
}

/* What /proc and the file systems of this host say. */

enum { WORST_PERCENT = 2, DESCRIPTORS_LEAST = 4096 };

/* --- programs --- */

struct doctor_program {
    const char *name;
    int running, replaced; /* processes; those of a program that is no more the installed one */
    int hidden;            /* those of which only root may know whether it is */
    int64_t descriptors;   /* least number of files that one may open; -1: unknown */
};

/* Returns the size of the arguments, each with the NUL behind it. */
static size_t read_arguments(struct doctor *doctor, const char *pid, char *words_r, size_t most)
{
    FILE *file = fopen(arena_printf(doctor->control->arena, "/proc/%s/cmdline", pid), "re");
    size_t size = file ? fread(words_r, 1, most, file) : 0;
    if (file)
        fclose(file);
    return size;
}

/* Does the process have the path of our settings among its arguments? */
static bool is_ours(struct doctor *doctor, const char *pid)
{
    char words[4096];
    size_t size = read_arguments(doctor, pid, words, sizeof words);
    return memmem(words, size, doctor->control->config, strlen(doctor->control->config) + 1) != NULL;
}

static int64_t read_descriptors(struct doctor *doctor, const char *pid)
{
    char line[256];
    long long most = -1;
    FILE *file = fopen(arena_printf(doctor->control->arena, "/proc/%s/limits", pid), "re");
    while (file && most < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, "Max open files", 14) == 0)
            sscanf(line + 14, "%lld", &most);
    if (file)
        fclose(file);
    return most;
}

static void doctor_note_process(struct doctor *doctor, const char *pid, struct doctor_program *programs,
                                size_t count)
{
    static const char deleted[] = " (deleted)";
    char path[4096];
    ssize_t size = readlink(arena_printf(doctor->control->arena, "/proc/%s/exe", pid), path, sizeof path - 1);
    /* A server lets nobody but root look into its memory (base/identity.c), which this link counts as. */
    bool is_hidden = size < 0 && errno == EACCES;
    if (is_hidden)
        size = (ssize_t)read_arguments(doctor, pid, path, sizeof path - 1);
    if (size <= 0)
        return;
    path[size] = '\0';
    char *end = strstr(path, deleted);
    if (end)
        *end = '\0';
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; slash && i < count; i++) {
        if (strcmp(slash + 1, programs[i].name) != 0 || !is_ours(doctor, pid))
            continue;
        int64_t descriptors = read_descriptors(doctor, pid);
        programs[i].running++;
        programs[i].replaced += end != NULL;
        programs[i].hidden += is_hidden;
        if (descriptors >= 0 && (programs[i].descriptors < 0 || descriptors < programs[i].descriptors))
            programs[i].descriptors = descriptors;
    }
}

static void doctor_check_programs(struct doctor *doctor)
{
    struct arena *arena = doctor->control->arena;
    struct doctor_program programs[] = {
        {"stampd", 0, 0, 0, -1}, {"stamp-queue", 0, 0, 0, -1}, {"stamp-journal", 0, 0, 0, -1}};
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (*entry->d_name >= '1' && *entry->d_name <= '9')
            doctor_note_process(doctor, entry->d_name, programs, COUNT_OF(programs));
    if (folder)
        closedir(folder);
    for (size_t i = 0; i < COUNT_OF(programs); i++) {
        const char *name = programs[i].name;
        if (programs[i].running || i == 0)
            doctor_find(doctor, DOCTOR_FAIL, programs[i].running, arena_printf(arena, "%s runs", name),
                        arena_printf(arena, "%s does not run: systemctl start %s", name, name));
        if (programs[i].replaced)
            doctor_find(
                doctor, DOCTOR_WARN, false, "",
                arena_printf(arena,
                             "%s: another release is installed than the one that runs: stampctl setup HOST",
                             name));
        else if (programs[i].hidden)
            doctor_find(doctor, DOCTOR_WARN, false, "",
                        arena_printf(arena, "%s: only root sees whether the installed release runs", name));
    }
    doctor_find(doctor, DOCTOR_WARN,
                programs[0].descriptors < 0 || programs[0].descriptors >= DESCRIPTORS_LEAST,
                "stampd may open enough files",
                arena_printf(arena, "stampd may open %lld files: LimitNOFILE=65536 in its unit",
                             (long long)programs[0].descriptors));
}

/* --- files --- */

static void doctor_check_secret(struct doctor *doctor, enum doctor_kind kind, const char *path, mode_t others)
{
    struct stat status;
    struct arena *arena = doctor->control->arena;
    if (!*path || stat(path, &status) != 0)
        return; /* check-config reports it */
    doctor_find(doctor, kind, !(status.st_mode & others),
                arena_printf(arena, "%s: mode %03o", path, (unsigned)status.st_mode & 0777),
                arena_printf(arena, "%s: others may read or write it (mode %03o): chmod %s %s", path,
                             (unsigned)status.st_mode & 0777,
                             others & S_IRGRP ? "u=rw,go=" : "g-w,o=", path));
}

/* --- disks --- */

static void doctor_check_disk(struct doctor *doctor, const char *what, const char *path)
{
    struct statfs disk;
    struct arena *arena = doctor->control->arena;
    if (!*path || statfs(path, &disk) != 0 || !disk.f_blocks)
        return;
    int64_t blocks = (int64_t)(disk.f_bavail * 100 / disk.f_blocks);
    int64_t files = disk.f_files ? (int64_t)(disk.f_ffree * 100 / disk.f_files) : 100;
    int64_t free = blocks < files ? blocks : files;
    doctor_find(doctor, free < WORST_PERCENT ? DOCTOR_FAIL : DOCTOR_WARN, free >= doctor->free_percent,
                arena_printf(arena, "disk of %s, %s: %lld %% free", what, path, (long long)free),
                arena_printf(arena, "disk of %s, %s: %lld %% of its %s free: remove files, or enlarge it",
                             what, path, (long long)free, blocks < files ? "bytes" : "inodes"));
}

/* The segment is written at every commit. */
static void doctor_check_memory(struct doctor *doctor)
{
    const char *folder = doctor->control->settings.run_directory;
    struct arena *arena = doctor->control->arena;
    if (access(folder, F_OK) == 0)
        doctor_find(
            doctor, DOCTOR_WARN, mapping_is_in_memory(folder),
            arena_printf(arena, "run_directory %s is in memory", folder),
            arena_printf(arena,
                         "run_directory %s is on a disk, which slows commits down: choose a folder in /run",
                         folder));
}

static void doctor_check_clock(struct doctor *doctor)
{
    struct timex state = {0};
    int result = adjtimex(&state);
    doctor_find(doctor, DOCTOR_WARN, result >= 0 && result != TIME_ERROR && !(state.status & STA_UNSYNC),
                "the clock is synchronised", "the clock is not synchronised: timedatectl set-ntp true");
}

/* Programs, limits, files, disks and the clock of this host. */
static void doctor_check_host(struct doctor *doctor)
{
    const struct settings *settings = &doctor->control->settings;
    doctor_check_programs(doctor);
    doctor_check_secret(doctor, DOCTOR_WARN, doctor->control->config, S_IWGRP | S_IROTH | S_IWOTH);
    doctor_check_secret(doctor, DOCTOR_FAIL, settings->queue_key_file, S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH);
    doctor_check_clock(doctor);
    doctor_check_memory(doctor);
    doctor_check_disk(doctor, "the segment", settings->run_directory);
    doctor_check_disk(doctor, "attachments", settings->blob_directory);
    doctor_check_disk(doctor, "records", settings->records_directory);
    doctor_check_disk(doctor, "PostgreSQL", "/var/lib/postgresql");
    doctor_check_disk(doctor, "nginx", "/var/lib/nginx");
    doctor_check_disk(doctor, "logs", "/var/log");
}

/* Each check is a row of a query: kind, is it well, what is good, what is bad and what to
 * do. */

enum { CLOCK_MS = 1000 };

/* Of the cluster. */
static const char cluster_checks[] =
    "select 'FAIL', current_setting('server_version_num')::int >= 150000, 'PostgreSQL ' || "
    "current_setting('server_version'),"
    "  'PostgreSQL ' || current_setting('server_version') || ': at least 15 is needed: pg_upgradecluster'"
    " union all select 'FAIL', setting = 'on', 'PostgreSQL: ' || name || ' is on',"
    "  'PostgreSQL: ' || name || ' is off: ' || case name when 'autovacuum' then 'tables grow for ever' else "
    "'a crash of its host"
    " destroys databases' end || ': alter system reset ' || name || '; then select pg_reload_conf()'"
    "  from pg_settings where name in ('fsync', 'full_page_writes', 'autovacuum')"
    " union all select 'FAIL', setting <> 'off', 'PostgreSQL: synchronous_commit is ' || setting,"
    "  'PostgreSQL: synchronous_commit is off: a crash loses commits that were answered: alter system reset "
    "synchronous_commit'"
    "  from pg_settings where name = 'synchronous_commit'"
    " union all select 'FAIL', exists (select from pg_stat_replication where sync_state in ('sync', "
    "'quorum')),"
    "  'PostgreSQL: a synchronous standby is connected',"
    "  'PostgreSQL: no standby of synchronous_standby_names is connected: commits wait: start it, or empty "
    "that setting'"
    "  where current_setting('synchronous_standby_names') <> ''"
    " union all select 'WARN', state = 'streaming' and coalesce(replay_lag, '0') < interval '1 minute',"
    "  format('PostgreSQL: standby %s follows', application_name),"
    "  format('PostgreSQL: standby %s: %s, %s behind: look into its log', application_name, state, "
    "coalesce(replay_lag, '0'))"
    "  from pg_stat_replication"
    " union all select 'WARN', active, format('PostgreSQL: slot %s is in use', slot_name),"
    "  format('PostgreSQL: slot %s is not in use, and %s of log are kept for it: start its receiver, or "
    "select"
    " pg_drop_replication_slot(''%s'')', slot_name,"
    "  pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), slot_name)"
    "  from pg_replication_slots where not temporary and not pg_is_in_recovery()"
    " union all select 'FAIL', coalesce(last_failed_time < last_archived_time, last_failed_time is null),"
    "  'PostgreSQL: the log is archived',"
    "  'PostgreSQL: archive_command fails since ' || last_failed_time::timestamp(0) || ': look into its log'"
    "  from pg_stat_archiver where current_setting('archive_mode') <> 'off'"
    " union all select 'WARN', count(*) = 0, 'PostgreSQL: no transaction is older than an hour',"
    "  'PostgreSQL: process ' || min(pid) || ' has a transaction that is older than an hour, and nothing is "
    "cleaned up"
    " meanwhile: select pg_terminate_backend(' || min(pid) || ')'"
    "  from pg_stat_activity where xact_start < now() - interval '1 hour'";

/* Of z, for a pair of hosts. */
static const char lease_checks[] = "select 'FAIL', installation is not null,"
                                   "  format('pair: %s serves since %s', holder, since::timestamp(0)),"
                                   "  'pair: no host serves: start stampd on one of them'"
                                   "  from stampd.lease where one";

/* Of z, where hosts hold records together. */
static const char host_checks[] =
    "with a as (select count(*) n, count(number) here, count(*) filter (where number is not null and"
    "  not is_exhaustive and not is_guest) unsure, count(distinct content_bytes) filter (where number is not "
    "null)"
    "  sizes, max(unsure_ms) filter (where not is_exhaustive) unsure_ms, coalesce(sum(missing), 0) missing,"
    "  string_agg(address, ', ' order by address) filter (where number is null) away,"
    "  string_agg(address, ', ' order by address) filter (where number is not null and bytes * 10 > memory * "
    "9)"
    "  full_hosts, string_agg(address || ' has ' || content_bytes, ', ' order by content_bytes, address)"
    "  filter (where number is not null) contents, max(beat_at) seen from stampd.host)"
    " select 'WARN', away is null, format('hosts: all %s take part', n), format('hosts: away: %s: start"
    " stamp-journal there, or stampctl host remove ADDRESS --lost', away) from a where n > 0"
    " union all select 'FAIL', seen > now() - interval '1 minute', 'hosts: they report to z',"
    " format('hosts: none has reported since %s: systemctl status stamp-journal', seen::timestamp(0))"
    " from a where here > 0"
    " union all select 'WARN', unsure = 0, 'hosts: all know which keys are absent',"
    " format('hosts: %s cannot know yet which keys are absent%s: stampctl host list', unsure,"
    " case when unsure_ms > 0 then format(', for %s s', unsure_ms / 1000) else ', until others have passed "
    "on what"
    " they have' end) from a where here > 0"
    " union all select 'WARN', sizes < 2, 'hosts: all have the same limit_content_bytes', format('hosts: "
    "different"
    " limit_content_bytes, of which the least holds: %s: set the same on all', contents) from a where here > "
    "0"
    " union all select 'WARN', full_hosts is null, 'hosts: all have room', format('hosts: nine tenths of the "
    "memory"
    " are in use: %s: raise cluster_mb there, or add a host', full_hosts) from a where here > 0"
    " union all select 'WARN', missing = 0, 'hosts: each record has its copies', format('hosts: %s records "
    "lack a"
    " copy: others are full, or do not answer: stampctl host list', missing) from a where here > 0";

/* Of a namespace. */
static const char task_checks[] =
    "select 'FAIL', running > 0 or oldest > stampd.stamp_of(now() - interval '1 minute'),"
    "  format('queue %s: %s tasks are due', qn, due),"
    "  format('queue %s: %s tasks are due, since %s, and none runs: systemctl status stamp-queue; "
    "doc/how-to/task-does-not-run.md',"
    "    qn, due, oldest)"
    "  from stampd.task_backlog() b where due > 0 and not exists (select from stampd.task_paused p where "
    "p.qn = b.qn)"
    " union all select 'WARN', parked = 0, '', format('queue %s: %s tasks are parked after failures: "
    "stampctl task list %s --state parked',"
    "  qn, parked, substring(current_database() from '^stampd_(.*)')) from stampd.task_backlog() where "
    "parked > 0"
    " union all select 'WARN', false, '', format('%s is paused since %s: stampctl task resume', what, since) "
    "from stampd.task_paused";

static bool doctor_ask(struct doctor *doctor, struct pg *pg, const char *sql, const char *before)
{
    struct arena *arena = doctor->control->arena;
    struct pg_result *rows;
    if (!control_query(doctor->control, pg, "doctor", sql, NULL, &rows))
        return false;
    for (int i = 0; i < pg_rows(rows); i++) {
        struct bytes kind = pg_get_text(rows, i, 0), good = pg_get_text(rows, i, 2),
                     bad = pg_get_text(rows, i, 3);
        doctor_find(doctor, bytes_equal(kind, BYTES("WARN")) ? DOCTOR_WARN : DOCTOR_FAIL,
                    pg_get_bool(rows, i, 1), arena_printf(arena, "%s%.*s", before, (int)good.size, good.data),
                    arena_printf(arena, "%s%.*s", before, (int)bad.size, bad.data));
    }
    return true;
}

/* Ends and tokens depend on the clock of this host, versions on that of PostgreSQL. */
static void doctor_compare_clocks(struct doctor *doctor, struct pg *z)
{
    struct arena *arena = doctor->control->arena;
    struct pg_result *row;
    int64_t before_ms = clock_wall_ms();
    if (!control_query(doctor->control, z, "doctor",
                       "select (extract(epoch from clock_timestamp()) * 1000)::bigint", NULL, &row))
        return;
    int64_t now_ms = clock_wall_ms(), theirs_ms = pg_get_i64(row, 0, 0);
    int64_t apart_ms = theirs_ms < before_ms ? before_ms - theirs_ms
                       : theirs_ms > now_ms  ? theirs_ms - now_ms
                                             : 0;
    doctor_find(
        doctor, DOCTOR_WARN, apart_ms < CLOCK_MS, "the clocks of this host and of PostgreSQL agree",
        arena_printf(
            arena,
            "the clocks of this host and of PostgreSQL are %lld ms apart: timedatectl set-ntp true on both",
            (long long)apart_ms));
}

static void doctor_check_tasks(struct doctor *doctor, const struct namespace_conf *conf)
{
    struct pg *pg;
    struct arena *arena = doctor->control->arena;
    if (conf->is_malformed || control_connect(doctor->control, conf->database, &pg) != FAULT_NONE ||
        !doctor_ask(doctor, pg, task_checks, arena_printf(arena, "namespace %s: ", conf->code)))
        doctor_find(doctor, DOCTOR_FAIL, false, "",
                    arena_printf(arena, "namespace %s: its tasks cannot be read: stampctl ns create %s",
                                 conf->code, conf->code));
}

/* The other clusters. */
static void doctor_check_cells(struct doctor *doctor)
{
    struct control *control = doctor->control;
    struct arena *arena = control->arena;
    for (size_t i = 0; i < control->settings.cell_count; i++) {
        struct pg *pg;
        const char *cell = control->settings.cells[i].name, *before = arena_printf(arena, "cell %s: ", cell);
        bool is_there = ns_database_open_cell(control, cell, &pg);
        doctor_find(doctor, DOCTOR_FAIL, is_there, arena_printf(arena, "%sits primary answers", before),
                    arena_printf(arena,
                                 "%sno primary answers, its namespaces are refused: stampctl cell status %s",
                                 before, cell));
        if (is_there && !doctor_ask(doctor, pg, cluster_checks, before))
            doctor->is_well = false;
    }
}

/* PostgreSQL's settings, standbys and archive, and the tasks of each namespace; connects as administrator. */
static void doctor_check_databases(struct doctor *doctor)
{
    struct control *control = doctor->control;
    struct namespace_conf *confs;
    struct pg *z;
    size_t count;
    bool is_there = ns_registry_open(control, &z) && ns_registry_read(control, z, &confs, &count);
    doctor_find(doctor, DOCTOR_FAIL, is_there, "PostgreSQL can be reached as administrator",
                "PostgreSQL cannot be reached as administrator: systemctl status postgresql; run this "
                "command as root");
    if (!is_there)
        return;
    if (!doctor_ask(doctor, z, cluster_checks, "") || !doctor_ask(doctor, z, host_checks, "") ||
        (control->settings.hosts == HOSTS_PAIR && !doctor_ask(doctor, z, lease_checks, "")))
        doctor->is_well = false;
    doctor_compare_clocks(doctor, z);
    doctor_check_cells(doctor);
    for (size_t i = 0; i < count; i++)
        doctor_check_tasks(doctor, &confs[i]);
}

#define NGINX_DEFAULT "/etc/nginx/nginx.conf"

/* Another command in a process of its own, as the user, if root runs this one and there is a user; its lines
 * are ours. */
static void doctor_include(struct doctor *doctor, const char *user,
                           int (*command)(struct control *, int, char **), int argc, const char *const *argv)
{
    int status = -1;
    const struct passwd *found = geteuid() == 0 && *user ? getpwnam(user) : NULL;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (found && (initgroups(user, found->pw_gid) != 0 || setgid(found->pw_gid) != 0 ||
                      setuid(found->pw_uid) != 0))
            _exit(CONTROL_FAILED);
        int result = command(doctor->control, argc, (char **)(uintptr_t)argv);
        fflush(NULL);
        _exit(result);
    }
    bool is_well = pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
                   WEXITSTATUS(status) == CONTROL_DONE;
    doctor->is_well = doctor->is_well && is_well;
}

static void doctor_check_configuration(struct doctor *doctor, const char *nginx, const char *map)
{
    const char *words[8] = {"check-config"};
    int count = 1;
    if (access(nginx, F_OK) == 0) {
        words[count++] = "--nginx";
        words[count++] = nginx;
    } else {
        doctor_find(doctor, DOCTOR_FAIL, false, "",
                    "nginx has no configuration of stampd: stampctl setup HOST, or --nginx FILE");
    }
    if (map) {
        words[count++] = "--map";
        words[count++] = map;
    }
    if (doctor->is_json)
        words[count++] = "--json";
    doctor_include(doctor, doctor->control->settings.user, control_check_config, count, words);
}

static void doctor_check_backups(struct doctor *doctor, const struct option_words *folders)
{
    const char *words[] = {"backup", "check", "--quick", NULL, "--json", NULL};
    if (!folders->count)
        doctor_find(
            doctor, DOCTOR_WARN, false, "",
            "no backup is checked: --backup FOLDER; doc/how-to/back-up-and-restore.md says how to make one");
    for (int i = 0; i < folders->count; i++) {
        words[3] = folders->words[i];
        doctor_include(doctor, "", control_backup, doctor->is_json ? 5 : 4, words);
    }
}

int control_doctor(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "doctor", "",
        "Check the whole installation: programs, settings, databases, nginx, disks, clock, backups, tasks.",
        "Each line is OK, WARN (change it soon) or FAIL, and says what to do.  Fails if a line is FAIL.  Run "
        "it as\n"
        "root: it includes `check-config` as the user of stampd, and `backup check --quick`.\n");
    struct doctor doctor = {.control = control, .is_well = true, .free_percent = 10};
    const char *nginx = NGINX_DEFAULT, *map = NULL;
    struct option_words backups = {0};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        RECORD_JSON_LINE(&doctor.is_json),
        OPTION_WORDS("backup", "FOLDER", &backups, "Check this backup too.  May be repeated."),
        OPTION_NUMBER("free", "PERCENT", &doctor.free_percent, 0, 100,
                      "Warn about a disk with less free (default: 10)."),
        OPTION_TEXT("nginx", "FILE", &nginx,
                    "Check this configuration of nginx (default: " NGINX_DEFAULT ")."),
        OPTION_TEXT("map", "FILE", &map,
                    "Read the map of namespaces from FILE (default: namespaces.map beside the settings)."),
    };
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    doctor_check_host(&doctor);
    doctor_check_databases(&doctor);
    doctor_check_configuration(&doctor, nginx, map);
    doctor_check_backups(&doctor, &backups);
    return doctor.is_well ? CONTROL_DONE : CONTROL_FAILED;
}
