/* backlog: numbers as atomic words; the time of the look comes last. */
#include "document/backlog.h"

enum { NUMBERS = sizeof(struct backlog_numbers) / sizeof(int64_t), CODE_WORDS = BACKLOG_CODE_BYTES / 8 };
_Static_assert(NUMBERS == 6, "nothing but numbers");

int64_t backlog_age_ms(const struct backlog *backlog, int64_t now_ms)
{
    int64_t looked_ms = atomic_load(&backlog->looked_ms);
    if (!looked_ms)
        return -1;
    return now_ms > looked_ms ? now_ms - looked_ms : 0;
}

static bool has_any(const int64_t words[NUMBERS])
{
    for (int i = 0; i < NUMBERS; i++)
        if (words[i])
            return true;
    return false;
}

void backlog_write(struct backlog *backlog, struct bytes code,
                   const struct backlog_numbers numbers[BACKLOG_QUEUES], int64_t now_ms)
{
    char text[BACKLOG_CODE_BYTES] = {0};
    uint64_t words[CODE_WORDS];
    assert(code.size <= sizeof text);
    memcpy(text, code.data, code.size);
    memcpy(words, text, sizeof words);
    for (int i = 0; i < CODE_WORDS; i++)
        atomic_store(&backlog->code[i], words[i]);
    for (int queue = 0; queue < BACKLOG_QUEUES; queue++) {
        int64_t values[NUMBERS];
        memcpy(values, &numbers[queue], sizeof values);
        for (int i = 0; i < NUMBERS; i++)
            atomic_store(&backlog->numbers[queue][i], values[i]);
        if (has_any(values))
            atomic_fetch_or(&backlog->queues_seen, UINT32_C(1) << queue);
    }
    atomic_store(&backlog->looked_ms, now_ms > 0 ? now_ms : 1);
}

void backlog_read_code(const struct backlog *backlog, char code_r[BACKLOG_CODE_BYTES + 1])
{
    uint64_t words[CODE_WORDS];
    for (int i = 0; i < CODE_WORDS; i++)
        words[i] = atomic_load(&backlog->code[i]);
    memcpy(code_r, words, sizeof words);
    code_r[BACKLOG_CODE_BYTES] = '\0';
}

bool backlog_read(const struct backlog *backlog, int queue, struct backlog_numbers *numbers_r)
{
    int64_t values[NUMBERS];
    assert(queue >= 0 && queue < BACKLOG_QUEUES);
    for (int i = 0; i < NUMBERS; i++)
        values[i] = atomic_load(&backlog->numbers[queue][i]);
    memcpy(numbers_r, values, sizeof values);
    return atomic_load(&backlog->queues_seen) >> queue & 1;
}
