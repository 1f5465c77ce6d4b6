/* content_check: the state of a check, shared by its files. */
#ifndef STAMPD_MODEL_CONTENT_CONTENT_CHECK_H
#define STAMPD_MODEL_CONTENT_CONTENT_CHECK_H

#include "model/content/content_node.h"

struct content_seen;

struct content_checking {
    struct arena *arena;
    struct content_budget budget;
    const struct json *root;
    const struct json *named; /* the member whose name is checked; NULL: none */
    int depth;
    int trials;      /* alternatives that it is inside: their violations are not the content's */
    bool is_stopped; /* nothing more is checked: the violation is final */
    bool is_costly;  /* it stopped for want of steps */
    struct content_violation *violation;
    /* Is the value as the subschema wants?  `seen`, unless NULL, gets the children that it evaluated, and
     * means nothing after false. */
    bool (*check)(struct content_checking *checking, const struct content_node *node,
                  const struct json *value, struct content_seen *seen);
};

/* The children that unevaluatedItems or unevaluatedProperties need not see. */
struct content_seen {
    uint64_t *bits; /* one for each child of the value */
    size_t words;
};

bool content_check_array(struct content_checking *checking, const struct content_node *node,
                         const struct json *value, struct content_seen *seen);
bool content_check_object(struct content_checking *checking, const struct content_node *node,
                          const struct json *value, struct content_seen *seen);
bool content_check_logic(struct content_checking *checking, const struct content_node *node,
                         const struct json *value, struct content_seen *seen);
bool content_check_pattern(struct content_checking *checking, const struct content_node *node,
                           const char *keyword, const struct pattern *pattern, const struct json *value,
                           struct bytes text);

/* Reports a violation, also inside a trial: it is final. */
void content_report(struct content_checking *checking, const struct content_node *node, const char *keyword,
                    const struct json *value, const char *expected);
/* Each reports the first violation and returns false; inside a trial only the latter. */
bool content_violate(struct content_checking *checking, const struct content_node *node, const char *keyword,
                     const struct json *value, const char *format, ...) PRINTF_LIKE(5, 6);
/* With a shortened excerpt of a text behind the words, and an end. */
bool content_violate_with(struct content_checking *checking, const struct content_node *node,
                          const char *keyword, const struct json *value, const char *before,
                          struct bytes excerpt, const char *after);
/* Ends the whole check, also inside trials. */
bool content_stop(struct content_checking *checking, bool is_costly);
/* Takes steps; false: the check has ended. */
bool content_step(struct content_checking *checking, const struct content_node *node,
                  const struct json *value, size_t steps);

#endif
