/* progress: what is displayed, and when. */
#include "control/documents/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { TERMINAL_MS = 200, LINE_MS = 5000, BAR_WIDTH = 24 };

void progress_start(struct progress *progress, int64_t offset, int64_t size)
{
    int64_t now_ms = clock_monotonic_ms();
    *progress = (struct progress){.is_terminal = isatty(STDERR_FILENO) == 1,
                                  .start_ms = now_ms,
                                  .shown_ms = now_ms,
                                  .start_offset = offset,
                                  .size = size,
                                  .unit = "lines"};
}

static size_t add_bar(int percent, char *text)
{
    size_t used = 0;
    text[used++] = '[';
    for (int i = 0; i < BAR_WIDTH; i++)
        text[used++] = i < percent * BAR_WIDTH / 100 ? '=' : ' ';
    text[used++] = ']';
    text[used++] = ' ';
    return used;
}

void progress_compose(const struct progress *progress, int64_t now_ms, int64_t lines, int64_t offset,
                      char *text, size_t text_size)
{
    int64_t spent_ms = now_ms > progress->start_ms ? now_ms - progress->start_ms : 1;
    int64_t done = offset - progress->start_offset, left = progress->size - offset;
    size_t used = 0;
    assert(text_size > BAR_WIDTH + 100);
    text[0] = '\0';
    if (progress->size > 0) {
        int percent = (int)((double)offset / (double)progress->size * 100);
        if (progress->is_terminal)
            used = add_bar(percent, text);
        used += (size_t)snprintf(text + used, text_size - used, "%3d %%  ", percent);
    }
    used += (size_t)snprintf(text + used, text_size - used, "%lld %s  %lld/s", (long long)lines,
                             progress->unit, (long long)(lines * 1000 / spent_ms));
    if (progress->size > 0 && done > 0 && left > 0) {
        int64_t left_s = (int64_t)((double)spent_ms * (double)left / (double)done / 1000 + 0.5);
        snprintf(text + used, text_size - used, "  %lld:%02lld left", (long long)(left_s / 60),
                 (long long)(left_s % 60));
    }
}

void progress_show(struct progress *progress, int64_t lines, int64_t offset)
{
    char text[160];
    int64_t now_ms = clock_monotonic_ms();
    if (now_ms - progress->shown_ms < (progress->is_terminal ? TERMINAL_MS : LINE_MS))
        return;
    progress->shown_ms = now_ms;
    progress_compose(progress, now_ms, lines, offset, text, sizeof text);
    if (progress->is_terminal)
        fprintf(stderr, "\r%s\033[K", text);
    else
        fprintf(stderr, "%s\n", text);
    progress->is_drawn = progress->is_terminal;
}

void progress_clear(struct progress *progress)
{
    if (progress->is_drawn)
        fputs("\r\033[K", stderr);
    progress->is_drawn = false;
}
