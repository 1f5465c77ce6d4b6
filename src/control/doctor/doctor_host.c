/* doctor_host: what /proc and the file systems of this host say. */
#include "control/doctor/doctor.h"

#include <dirent.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include "control/folder_reach.h"
#include "edge/mapping.h"

enum { WORST_PERCENT = 2, DESCRIPTORS_LEAST = 4096 };

/* --- programs --- */

struct doctor_program {
    const char *name;
    int running, replaced; /* processes; those of a program that is no more the installed one */
    int64_t descriptors;   /* least number of files that one may open; -1: unknown */
};

/* Does the process have the path of our settings among its arguments? */
static bool is_ours(struct doctor *doctor, const char *pid)
{
    char words[4096];
    FILE *file = fopen(arena_printf(doctor->control->arena, "/proc/%s/cmdline", pid), "re");
    size_t size = file ? fread(words, 1, sizeof words, file) : 0;
    if (file)
        fclose(file);
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
        if (descriptors >= 0 && (programs[i].descriptors < 0 || descriptors < programs[i].descriptors))
            programs[i].descriptors = descriptors;
    }
}

static void doctor_check_programs(struct doctor *doctor)
{
    struct arena *arena = doctor->control->arena;
    struct doctor_program programs[] = {
        {"stampd", 0, 0, -1}, {"stamp-queue", 0, 0, -1}, {"stamp-journal", 0, 0, -1}};
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

void doctor_check_host(struct doctor *doctor)
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
