/* content_keyword: the table of the keywords. */
#include "model/content/content_keyword.h"

#include "model/content/content_keyword_table.h"
#include "model/content/content_read.h"

static const struct {
    const char *name;
    content_keyword *read;
    bool is_of_text;
} keywords[] = {
#define KEYWORD(name, word, is_of_text) {name, content_read_##word, is_of_text},
    CONTENT_KEYWORDS(KEYWORD)
#undef KEYWORD
};

content_keyword *content_keyword_find(struct bytes name, bool is_raw)
{
    for (size_t i = 0; i < COUNT_OF(keywords); i++)
        if ((!is_raw || keywords[i].is_of_text) && bytes_equal(name, bytes_of(keywords[i].name)))
            return keywords[i].read;
    return NULL;
}

const char *content_keyword_names(bool is_raw)
{
#define KEYWORD(name, word, is_of_text) " " name
    static const char all[] = CONTENT_KEYWORDS(KEYWORD);
#undef KEYWORD
    return is_raw ? "minLength maxLength pattern format title description $comment" : all + 1;
}
