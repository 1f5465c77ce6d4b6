/* content_violation: reports violations, and counts steps. */
#include "model/content/content_check.h"

#include <stdarg.h>
#include <stdio.h>

#include "model/content/content_place.h"

enum { EXCERPT_MOST = 120 };

static const char *content_violation_place_of(const struct content_checking *checking,
                                              const struct json *value)
{
    struct builder text = {0};
    if (!json_add_pointer(&text, checking->root, value) && checking->named)
        (void)json_add_pointer(&text, checking->root, checking->named);
    const char *place = arena_copy(checking->arena, text.size ? text.data : "", text.size);
    builder_free(&text);
    return place;
}

void content_report(struct content_checking *checking, const struct content_node *node, const char *keyword,
                    const struct json *value, const char *expected)
{
    *checking->violation = (struct content_violation){
        .place = content_violation_place_of(checking, value),
        .keyword = keyword ? keyword : node->keyword,
        .rule = content_place_of_rule(checking->arena, node, keyword),
        .expected = expected,
    };
}

bool content_violate(struct content_checking *checking, const struct content_node *node, const char *keyword,
                     const struct json *value, const char *format, ...)
{
    char words[256];
    va_list list;
    if (checking->trials || checking->is_stopped)
        return false;
    va_start(list, format);
    (void)vsnprintf(words, sizeof words, format, list);
    va_end(list);
    content_report(checking, node, keyword, value, arena_copy(checking->arena, words, strlen(words)));
    return false;
}

/* Whole characters only. */
static struct bytes content_violation_shorten(struct bytes text)
{
    size_t size = EXCERPT_MOST;
    if (text.size <= EXCERPT_MOST)
        return text;
    while (size && ((unsigned char)text.data[size] & 0xc0) == 0x80)
        size--;
    return (struct bytes){text.data, size};
}

bool content_violate_with(struct content_checking *checking, const struct content_node *node,
                          const char *keyword, const struct json *value, const char *before,
                          struct bytes excerpt, const char *after)
{
    if (checking->trials || checking->is_stopped)
        return false;
    struct bytes shown = content_violation_shorten(excerpt);
    content_report(checking, node, keyword, value,
                   arena_printf(checking->arena, "%s%.*s%s%s", before, (int)shown.size, shown.data,
                                shown.size < excerpt.size ? "..." : "", after));
    return false;
}

bool content_stop(struct content_checking *checking, bool is_costly)
{
    checking->is_stopped = true;
    checking->is_costly = is_costly;
    return false;
}

bool content_step(struct content_checking *checking, const struct content_node *node,
                  const struct json *value, size_t steps)
{
    if (checking->is_stopped)
        return false;
    if (content_spend(&checking->budget, steps))
        return true;
    content_report(checking, node, NULL, value, "A content that can be checked in fewer steps is expected.");
    return content_stop(checking, true);
}

bool content_check_pattern(struct content_checking *checking, const struct content_node *node,
                           const char *keyword, const struct pattern *pattern, const struct json *value,
                           struct bytes text)
{
    int64_t most = CONTENT_PATTERN_STEPS_MOST + 16 * (int64_t)text.size;
    int64_t steps = most < checking->budget.steps ? most : checking->budget.steps, left = steps;
    enum pattern_result result = pattern_match(pattern, text, &left);
    checking->budget.steps -= steps - left;
    if (result == PATTERN_COSTLY && !checking->is_stopped) {
        content_report(checking, node, keyword, value,
                       "A text that the regular expression can judge in fewer steps is expected.");
        return content_stop(checking, steps < most);
    }
    return result == PATTERN_MATCHES;
}
