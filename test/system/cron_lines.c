/* cron_lines: answers questions about periodic times, for test_cron.py.
 *
 * The zone is the first word of the command.  Each line of standard input is "TEXT SECONDS"; the answer is
 * the next time, in seconds since 1970, or "-" when the text is none. */
#include <inttypes.h>
#include <stdio.h>

#include "model/task/cron.h"

int main(int argc, char **argv)
{
    char text[64];
    int64_t after;
    if (argc != 2 || !cron_set_zone(argv[1]))
        return 2;
    while (scanf("%63s %" SCNd64, text, &after) == 2) {
        struct cron cron;
        if (cron_parse(bytes_of(text), &cron))
            printf("%" PRId64 "\n", cron_next_ms(&cron, after * 1000) / 1000);
        else
            puts("-");
    }
    return 0;
}
