/* confinement: limits of resources, then a filter of system calls (seccomp), which refuses with EPERM. */
#include "edge/confinement.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Above `most` the process gets a signal or an error; above `last` no signal can be handled. */
static bool limit(int resource, int64_t most, int64_t last)
{
    const struct rlimit to = {(rlim_t)most, (rlim_t)last};
    return setrlimit((__rlimit_resource_t)resource, &to) == 0;
}

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE

/* Each takes two steps: compare, refuse. */
#define REFUSE(name)                                                                                         \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                                   \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
/* Allowed only where the low half of the first argument passes the test.  Five steps. */
#define ONLY(name, test, value)                                                                              \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), LOAD(args[0]),                                    \
        BPF_JUMP(BPF_JMP | (test) | BPF_K, (value), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),     \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, member))

static bool filter(void)
{
    struct sock_filter steps[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        LOAD(nr),
#if defined(__x86_64__)
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1), /* the calls of x32 */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        REFUSE(fork),
        REFUSE(vfork),
        REFUSE(open),
        REFUSE(creat),
        REFUSE(unlink),
        REFUSE(rename),
        REFUSE(mkdir),
        REFUSE(link),
        REFUSE(symlink),
        REFUSE(chmod),
        REFUSE(chown),
        REFUSE(lchown),
        REFUSE(rmdir),
        REFUSE(mknod),
#endif
        REFUSE(execve),
        REFUSE(execveat),
        REFUSE(socket),
        REFUSE(socketpair),
        REFUSE(connect),
        REFUSE(bind),
        REFUSE(sendto),
        REFUSE(sendmsg),
        REFUSE(ptrace),
        REFUSE(process_vm_readv),
        REFUSE(process_vm_writev),
        REFUSE(kill),
        REFUSE(tkill),
        REFUSE(rt_sigqueueinfo),
        REFUSE(rt_tgsigqueueinfo),
        REFUSE(pidfd_open),
        REFUSE(pidfd_send_signal),
        REFUSE(pidfd_getfd),
        REFUSE(process_madvise),
        REFUSE(userfaultfd),
        REFUSE(unlinkat),
        REFUSE(renameat),
        REFUSE(renameat2),
        REFUSE(mknodat),
        REFUSE(utimensat),
        REFUSE(setxattr),
        REFUSE(lsetxattr),
        REFUSE(removexattr),
        REFUSE(mkdirat),
        REFUSE(linkat),
        REFUSE(symlinkat),
        REFUSE(fchmodat),
        REFUSE(fchownat),
        REFUSE(truncate),
        REFUSE(mount),
        REFUSE(unshare),
        REFUSE(setns),
        REFUSE(bpf),
        REFUSE(perf_event_open),
        REFUSE(keyctl),
        REFUSE(add_key),
        REFUSE(io_uring_setup),
        REFUSE(openat2),
        REFUSE(open_by_handle_at),
        REFUSE(openat),
        /* Threads, no processes.  The flags of clone3 are in memory: without it libc calls clone. */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        ONLY(clone, BPF_JSET, CLONE_THREAD),
        ONLY(tgkill, BPF_JEQ, (uint32_t)getpid()), /* abort() */
        ONLY(prlimit64, BPF_JEQ, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {COUNT_OF(steps), steps};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#else

static bool filter(void)
{
    return true;
}

#endif

bool confinement_enter(const struct confinement *confinement)
{
    const int64_t cpu_s = confinement->cpu_s, files = confinement->files, memory = confinement->memory_bytes;
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
           syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) == 0 && prctl(PR_SET_DUMPABLE, 0) == 0 &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && limit(RLIMIT_CORE, 0, 0) &&
           limit(RLIMIT_FSIZE, 0, 0) && limit(RLIMIT_NOFILE, files, files) &&
           limit(RLIMIT_CPU, cpu_s, cpu_s + 1) && (!memory || limit(RLIMIT_AS, memory, memory)) && filter();
}
