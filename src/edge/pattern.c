/* pattern: PCRE2 calls back before each item of an expression, which counts the steps.
 *
 * PCRE2's own match limit does not bound the time: it is counted anew from each position where a match may
 * begin, and a possessive repeat costs nothing however long it is.  The callouts see each item tried, and how
 * far the matcher has moved.  What an item may cost without moving is bounded by the size of the
 * expression, as back references are refused. */
#include "edge/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/log.h"

enum {
    COMPILED_MOST = 64 * 1024, /* bytes */
    NESTED_MOST = 32,          /* parentheses */
    HEAP_KIB_MOST = 2048,      /* memory of a match; over it a match is costly */
};

struct pattern {
    pcre2_code *code;
};

/* What one match may still cost. */
struct meter {
    int64_t steps;
    size_t at; /* position of the last callout */
};

/* One process runs one match at a time; these are never freed. */
static pcre2_compile_context *compile_context;
static pcre2_match_context *match_context;
static pcre2_match_data *match_data;

static int count_step(pcre2_callout_block *block, void *context)
{
    struct meter *meter = context;
    size_t at = block->current_position;
    meter->steps -= 1 + (int64_t)(at > meter->at ? at - meter->at : meter->at - at);
    meter->at = at;
    return meter->steps < 0 ? PCRE2_ERROR_CALLOUT : 0;
}

static void create_contexts(void)
{
    if (match_data)
        return;
    compile_context = pcre2_compile_context_create(NULL);
    match_context = pcre2_match_context_create(NULL);
    match_data = pcre2_match_data_create(1, NULL);
    if (!compile_context || !match_context || !match_data)
        log_fatal("out of memory regular expressions");
    pcre2_set_newline(compile_context, PCRE2_NEWLINE_ANYCRLF);
    pcre2_set_parens_nest_limit(compile_context, NESTED_MOST);
    pcre2_set_max_pattern_length(compile_context, PATTERN_TEXT_MOST);
    pcre2_set_compile_extra_options(compile_context, PCRE2_EXTRA_ALT_BSUX);
    pcre2_set_heap_limit(match_context, HEAP_KIB_MOST);
}

static bool pattern_refuse(struct arena *arena, struct pattern_problem *problem_r, const char *what,
                           size_t offset)
{
    *problem_r = (struct pattern_problem){arena_printf(arena, "%s", what), offset};
    return false;
}

/* Verbs would change the limits and options; callouts of their own mean nothing. */
static const char *find_foreign(struct bytes text)
{
    for (size_t i = 0; i + 1 < text.size; i++) {
        if (text.data[i] == '\\')
            i++;
        else if (text.data[i] == '(' && text.data[i + 1] == '*')
            return text.data + i;
        else if (i + 2 < text.size && memcmp(text.data + i, "(?C", 3) == 0)
            return text.data + i;
    }
    return NULL;
}

static void pattern_release(void *code)
{
    pcre2_code_free(code);
}

static uint32_t read_info(const pcre2_code *code, uint32_t what)
{
    uint32_t value = 0;
    (void)pcre2_pattern_info(code, what, &value);
    return value;
}

bool pattern_compile(struct arena *arena, struct bytes text, const struct pattern **pattern_r,
                     struct pattern_problem *problem_r)
{
    static const uint32_t options = PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX |
                                    PCRE2_ALLOW_EMPTY_CLASS | PCRE2_NEVER_BACKSLASH_C |
                                    PCRE2_NO_AUTO_CAPTURE | PCRE2_AUTO_CALLOUT;
    int error;
    PCRE2_SIZE offset;
    size_t size = 0;
    if (text.size > PATTERN_TEXT_MOST)
        return pattern_refuse(arena, problem_r, "it is longer than 1024 bytes", PATTERN_TEXT_MOST);
    const char *foreign = find_foreign(text);
    if (foreign)
        return pattern_refuse(arena, problem_r, "verbs and callouts are not allowed",
                              (size_t)(foreign - text.data));
    create_contexts();
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)text.data, text.size, options, &error, &offset, compile_context);
    if (!code) {
        PCRE2_UCHAR words[256];
        int length = pcre2_get_error_message(error, words, sizeof words);
        return pattern_refuse(arena, problem_r, length < 0 ? "it is not a regular expression" : (char *)words,
                              offset);
    }
    arena_defer(arena, pattern_release, code);
    if (read_info(code, PCRE2_INFO_BACKREFMAX))
        return pattern_refuse(arena, problem_r, "back references are not allowed", 0);
    if (pcre2_pattern_info(code, PCRE2_INFO_SIZE, &size) || size > COMPILED_MOST)
        return pattern_refuse(arena, problem_r, "it is too large, with its repeats", 0);
    struct pattern *pattern = ARENA_NEW(arena, struct pattern);
    pattern->code = code;
    *pattern_r = pattern;
    return true;
}

enum pattern_result pattern_match(const struct pattern *pattern, struct bytes text, int64_t *steps)
{
    struct meter meter = {.steps = *steps - 1 - (int64_t)(text.size / 16)};
    if (meter.steps < 0) {
        *steps = 0;
        return PATTERN_COSTLY;
    }
    create_contexts();
    pcre2_set_callout(match_context, count_step, &meter);
    int result = pcre2_match(pattern->code, (PCRE2_SPTR)(text.data ? text.data : ""), text.size, 0,
                             PCRE2_NO_UTF_CHECK, match_data, match_context);
    bool is_known = result >= 0 || result == PCRE2_ERROR_NOMATCH;
    *steps = is_known && meter.steps > 0 ? meter.steps : 0;
    if (!is_known)
        return PATTERN_COSTLY;
    return result >= 0 ? PATTERN_MATCHES : PATTERN_DIFFERS;
}
