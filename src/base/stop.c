/* stop: signalfd and the mask. */
#include "base/stop.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"

static int descriptor = -1;
static enum stop requested;

/* All signals except those that the kernel sends for faults of the program itself. */
static void fill_mask(sigset_t *mask)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigfillset(mask);
    for (size_t i = 0; i < COUNT_OF(own); i++)
        sigdelset(mask, own[i]);
}

int stop_open(void)
{
    static const int heeded[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGCHLD, SIGUSR1, SIGUSR2, SIGALRM};
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t mask;
    fill_mask(&mask);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    /* An ignored signal would never reach the descriptor. */
    for (size_t i = 0; i < COUNT_OF(heeded); i++)
        sigaction(heeded[i], &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    if (descriptor >= 0)
        close(descriptor);
    descriptor = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    if (descriptor < 0)
        log_fatal("cannot make a signal descriptor: %m");
    requested = STOP_NOT;
    return descriptor;
}

static void NORETURN end_at_once(int number UNUSED)
{
    _exit(0);
}

void stop_end_at_once(void)
{
    struct sigaction action = {.sa_handler = end_at_once};
    sigset_t mask;
    fill_mask(&mask);
    sigdelset(&mask, SIGTERM);
    sigdelset(&mask, SIGQUIT);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGQUIT, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
}

int stop_next(void)
{
    struct signalfd_siginfo info;
    return read(descriptor, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

bool stop_ends(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

void stop_heed(bool *is_interrupted, bool *is_abandoned)
{
    for (int number; (number = stop_next());)
        if (stop_ends(number)) {
            *is_abandoned = *is_interrupted;
            *is_interrupted = true;
        }
}

enum stop stop_requested(void)
{
    for (int number; (number = stop_next());) {
        if (number == SIGQUIT)
            requested = STOP_NOW;
        else if (number == SIGTERM && requested == STOP_NOT)
            requested = STOP_DRAIN;
    }
    return requested;
}
