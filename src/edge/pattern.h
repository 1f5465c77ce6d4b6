/* pattern: regular expressions, behind PCRE2, at a bounded cost.
 *
 * Expressions are those of ECMA-262 as JSON Schema uses them, as far as PCRE2 accepts them: unanchored, on
 * UTF-8, "." excludes line ends, "$" is the end of the text alone, \d, \w and \s are ASCII, \uXXXX and
 * \u{X…} are characters, \p{…} are Unicode properties.  Back references, callouts, verbs (*…) and \C are
 * refused, so the cost of a match can be counted: each step of the matcher counts 1, and 1 for each
 * byte by which it moves.  A match that would need more steps than allowed ends with PATTERN_COSTLY, whatever
 * the expression and the text: nothing hangs. */
#ifndef STAMPD_EDGE_PATTERN_H
#define STAMPD_EDGE_PATTERN_H

#include "base/arena.h"
#include "base/bytes.h"

struct pattern;

enum { PATTERN_TEXT_MOST = 1024 /* bytes of an expression */ };

enum pattern_result { PATTERN_MATCHES, PATTERN_DIFFERS, PATTERN_COSTLY };

/* Why an expression was refused. */
struct pattern_problem {
    const char *what; /* a clause without capital and full stop, in the arena */
    size_t offset;    /* bytes from the start */
};

/* Compiles an expression, which must be UTF-8; it lives until the arena's reset.  False: refused.  The
 * compiled form has at most 64 KiB. */
MUST_USE bool pattern_compile(struct arena *arena, struct bytes text, const struct pattern **pattern_r,
                              struct pattern_problem *problem_r);

/* Does the expression match anywhere in the text, which must be UTF-8?  Subtracts its cost from `steps`,
 * which is 0 after PATTERN_COSTLY. */
MUST_USE enum pattern_result pattern_match(const struct pattern *pattern, struct bytes text, int64_t *steps);

#endif
