/* cmd_doctor: `stampctl doctor`: is the installation well?  It adds to check-config and backup check what
 * only root sees. */
#include "control/doctor/doctor.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/record.h"

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
    static const struct command command = {
        "doctor",
        "",
        0,
        0,
        "Check the whole installation: programs, settings, databases, nginx, disks, clock, backups, tasks.",
        "Each line is OK, WARN (change it soon) or FAIL, and says what to do.  Fails if a line is FAIL.  Run "
        "it as\n"
        "root: it includes `check-config` as the user of stampd, and `backup check --quick`.\n"};
    struct doctor doctor = {.control = control, .is_well = true, .free_percent = 10};
    const char *nginx = NGINX_DEFAULT, *map = NULL;
    struct option_words backups = {0};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        RECORD_JSON_LINE(&doctor.is_json),
        {.name = "backup",
         .argument = "FOLDER",
         .help = "Check this backup too.  May be repeated.",
         .words = &backups},
        OPTION_NUMBER("free", "PERCENT", &doctor.free_percent, 0, 100,
                      "Warn about a disk with less free (default: 10)."),
        OPTION_TEXT("nginx", "FILE", &nginx,
                    "Check this configuration of nginx (default: " NGINX_DEFAULT ")."),
        OPTION_TEXT("map", "FILE", &map,
                    "Read the map of namespaces from FILE (default: namespaces.map beside the settings)."),
    };
    char **words;
    int status;
    if (!control_begin(control, &command, lines, COUNT_OF(lines), argc, argv, &words, &status))
        return status;
    doctor_check_host(&doctor);
    doctor_check_databases(&doctor);
    doctor_check_configuration(&doctor, nginx, map);
    doctor_check_backups(&doctor, &backups);
    return doctor.is_well ? CONTROL_DONE : CONTROL_FAILED;
}
