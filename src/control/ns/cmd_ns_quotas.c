/* cmd_ns_quotas: `stampctl ns quotas`: the member `quotas` of a namespace's configuration. */
#include "control/ns/cmd_ns.h"

#include <stdio.h>
#include <string.h>

#include "control/message.h"
#include "edge/json/json.h"

/* As it is configured; nothing: those of z apply. */
static bool print(struct control *control, const char *code)
{
    const struct json *quotas;
    if (!cmd_ns_read(control, code, "quotas", &quotas))
        return false;
    if (quotas)
        printf("%.*s\n", (int)quotas->text.size, quotas->text.data);
    return true;
}

int cmd_ns_quotas(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "ns quotas",
        "CODE [QUOTAS]",
        1,
        2,
        "Set the quotas of callers; without QUOTAS, print them.",
        "QUOTAS is a JSON object, as "
        "{\"address\":{\"requests\":\"600/min\",\"live_open\":10},\"namespace\":{\"writes\":\"50/s\"}}.\n"
        "A namespace without quotas has those of z.  Those of an address do not hold for exempt_clients.\n"};
    bool is_none = false;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
                                        OPTION_FLAG("none", &is_none, "Remove them: those of z apply.")};
    char **words;
    int status;
    if (!control_begin(control, &command, lines, COUNT_OF(lines), argc, argv, &words, &status))
        return status;
    if (is_none && words[1]) {
        message_print("%s: expected --none or QUOTAS, not both", command.name);
        return CONTROL_WRONG;
    }
    struct bytes value = is_none ? NO_BYTES : bytes_of(words[1] ? words[1] : "");
    bool is_done =
        words[1] || is_none ? cmd_ns_set(control, words[0], "quotas", value) : print(control, words[0]);
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}
