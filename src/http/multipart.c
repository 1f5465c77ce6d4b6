/* multipart: delimiters, the heads of parts, their parameters. */
#include "http/multipart.h"

#include <strings.h>

enum { BOUNDARY_MAX = 70, TYPE_MAX = 255 };

/* --- small texts --------------------------------------------------------------------------------- */

static bool multipart_is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static bool multipart_is_token(char byte)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
           (byte && strchr(others, byte));
}

static bool is_word(struct bytes text, const char *word)
{
    return text.size == strlen(word) && strncasecmp(text.data, word, text.size) == 0;
}

static void multipart_skip(struct bytes *text, size_t size)
{
    assert(size <= text->size);
    text->data += size;
    text->size -= size;
}

static void multipart_skip_blanks(struct bytes *text)
{
    while (text->size && multipart_is_blank(*text->data))
        multipart_skip(text, 1);
}

static bool multipart_take(struct bytes *text, struct bytes word)
{
    if (text->size < word.size || memcmp(text->data, word.data, word.size) != 0)
        return false;
    multipart_skip(text, word.size);
    return true;
}

static struct bytes take_token(struct bytes *text)
{
    struct bytes token = {text->data, 0};
    while (token.size < text->size && multipart_is_token(token.data[token.size]))
        token.size++;
    multipart_skip(text, token.size);
    return token;
}

/* --- parameters: ; name=value ; name="value" ----------------------------------------------------- */

/* After the opening quote.  A backslash escapes only a quote or a backslash: browsers send file names with
 * other backslashes unescaped. */
static bool take_quoted(struct arena *arena, struct bytes *text, struct bytes *value_r)
{
    size_t size = 0, escapes = 0;
    while (size < text->size && text->data[size] != '"') {
        bool is_escape = text->data[size] == '\\' && size + 1 < text->size &&
                         (text->data[size + 1] == '"' || text->data[size + 1] == '\\');
        escapes += is_escape;
        size += is_escape ? 2 : 1;
    }
    if (size >= text->size)
        return false;
    *value_r = (struct bytes){text->data, size};
    multipart_skip(text, size + 1);
    if (!escapes)
        return true;
    char *plain = arena_alloc(arena, size);
    size_t length = 0;
    for (size_t i = 0; i < value_r->size; i++) {
        char byte = value_r->data[i];
        if (byte == '\\' && (value_r->data[i + 1] == '"' || value_r->data[i + 1] == '\\'))
            byte = value_r->data[++i];
        plain[length++] = byte;
    }
    *value_r = (struct bytes){plain, length};
    return true;
}

static bool take_parameter(struct arena *arena, struct bytes *text, struct bytes *name_r,
                           struct bytes *value_r)
{
    multipart_skip_blanks(text);
    if (!multipart_take(text, BYTES(";")))
        return false;
    multipart_skip_blanks(text);
    *name_r = take_token(text);
    if (!name_r->size || !multipart_take(text, BYTES("=")))
        return false;
    if (multipart_take(text, BYTES("\"")))
        return take_quoted(arena, text, value_r);
    *value_r = take_token(text);
    return value_r->size != 0;
}

/* --- the boundary -------------------------------------------------------------------------------- */

static bool is_boundary(struct bytes text)
{
    static const char others[] = "'()+_,-./:=? ";
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        bool is_legal = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                        (byte >= 'a' && byte <= 'z') || (byte && strchr(others, byte));
        if (!is_legal)
            return false;
    }
    return text.size >= 1 && text.size <= BOUNDARY_MAX && text.data[text.size - 1] != ' ';
}

/* Some clients send characters unquoted that a token must not have: reads up to a blank or a semicolon. */
static bool multipart_take_value(struct bytes *text, struct bytes *value_r)
{
    bool is_quoted = multipart_take(text, BYTES("\""));
    size_t size = 0;
    while (size < text->size &&
           (is_quoted ? text->data[size] != '"'
                      : text->data[size] != ';' && !multipart_is_blank(text->data[size])))
        size++;
    *value_r = (struct bytes){text->data, size};
    multipart_skip(text, size);
    return !is_quoted || multipart_take(text, BYTES("\""));
}

static bool find_boundary(struct bytes parameters, struct bytes *boundary_r)
{
    bool is_found = false;
    while (parameters.size) {
        struct bytes value;
        multipart_skip_blanks(&parameters);
        struct bytes name = take_token(&parameters);
        if (!name.size || !multipart_take(&parameters, BYTES("=")) ||
            !multipart_take_value(&parameters, &value))
            return false;
        if (is_word(name, "boundary")) {
            if (is_found || !is_boundary(value))
                return false;
            *boundary_r = value;
            is_found = true;
        }
        multipart_skip_blanks(&parameters);
        if (parameters.size && !multipart_take(&parameters, BYTES(";")))
            return false;
    }
    return is_found;
}

/* --- delimiters ---------------------------------------------------------------------------------- */

static enum fault multipart_refuse(const char **what_r, enum fault fault, const char *what)
{
    *what_r = what;
    return fault;
}

/* Reads the end of a delimiter's line, which may be missing at the very end of the body. */
static enum fault end_line(struct multipart *multipart, const char **what_r)
{
    multipart_skip_blanks(&multipart->rest);
    if (multipart_take(&multipart->rest, BYTES("\r\n")))
        return FAULT_NONE;
    bool is_cut = !multipart->rest.size || bytes_equal(multipart->rest, BYTES("\r")) ||
                  bytes_equal(multipart->rest, BYTES("-"));
    return is_cut ? multipart_refuse(what_r, FAULT_ABODY, "The body ends within a part.")
                  : multipart_refuse(what_r, FAULT_AARG, "Something stands behind a boundary.");
}

enum fault multipart_open(struct arena *arena, struct bytes parameters, struct bytes body,
                          struct multipart *multipart_r, const char **what_r)
{
    struct bytes boundary;
    if (!find_boundary(parameters, &boundary))
        return multipart_refuse(what_r, FAULT_ATYPE,
                                "A multipart/form-data body needs a boundary of 1 to 70 characters.");
    size_t size = 4 + boundary.size;
    char *delimiter = arena_alloc(arena, size);
    memcpy(delimiter, "\r\n--", 4);
    memcpy(delimiter + 4, boundary.data, boundary.size);
    *multipart_r = (struct multipart){.arena = arena, .delimiter = {delimiter, size}, .rest = body};
    if (!multipart_take(&multipart_r->rest, (struct bytes){delimiter + 2, size - 2}))
        return multipart_refuse(what_r, FAULT_AARG, "The body does not begin with its boundary.");
    return FAULT_NONE;
}

/* The content, up to the next delimiter. */
static enum fault take_content(struct multipart *multipart, struct bytes *content_r, const char **what_r)
{
    struct bytes delimiter = multipart->delimiter, rest = multipart->rest, first = rest;
    if (multipart_take(&first, (struct bytes){delimiter.data + 2, delimiter.size - 2}))
        return multipart_refuse(what_r, FAULT_AARG, "A boundary stands where a content is expected.");
    const char *end = memmem(rest.data, rest.size, delimiter.data, delimiter.size);
    if (!end)
        return multipart_refuse(what_r, FAULT_ABODY, "The last boundary is missing.");
    *content_r = (struct bytes){rest.data, (size_t)(end - rest.data)};
    multipart_skip(&multipart->rest, content_r->size + delimiter.size);
    return FAULT_NONE;
}

/* --- the head of a part -------------------------------------------------------------------------- */

struct part_header {
    struct arena *arena;
    struct part *part;
    bool has_disposition;
    const char **what_r;
};

/* Visible ASCII and blanks; with `others` also bytes above. */
static bool is_field_text(struct bytes text, bool others)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if ((byte < ' ' && byte != '\t') || byte == 0x7f || (byte > 0x7f && !others))
            return false;
    }
    return true;
}

static enum fault take_name(struct part_header *header, struct bytes name, struct bytes value)
{
    bool is_file = is_word(name, "filename");
    if (is_word(name, "filename*") || is_word(name, "name*"))
        return multipart_refuse(header->what_r, FAULT_AARG,
                                "The name and filename are sent as UTF-8, without *.");
    if (!is_file && !is_word(name, "name"))
        return FAULT_NONE;
    struct bytes *field = is_file ? &header->part->file_name : &header->part->name;
    if (field->data)
        return multipart_refuse(header->what_r, FAULT_AARG, "A part has two names.");
    if (!bytes_is_utf8(value))
        return multipart_refuse(header->what_r, FAULT_AUTF8, "The name of a part is not valid UTF-8.");
    *field = value.size ? value : BYTES("");
    return FAULT_NONE;
}

static enum fault read_disposition(struct part_header *header, struct bytes value)
{
    enum fault fault = FAULT_NONE;
    if (header->has_disposition || !is_word(take_token(&value), "form-data"))
        return multipart_refuse(header->what_r, FAULT_AARG,
                                "A part has one Content-Disposition, of form-data.");
    header->has_disposition = true;
    multipart_skip_blanks(&value);
    while (value.size && !fault) {
        struct bytes name, text;
        if (!take_parameter(header->arena, &value, &name, &text))
            return multipart_refuse(header->what_r, FAULT_AARG, "A Content-Disposition is malformed.");
        fault = take_name(header, name, text);
        multipart_skip_blanks(&value);
    }
    return fault;
}

static enum fault multipart_read_field(struct part_header *header, struct bytes name, struct bytes value)
{
    if (is_word(name, "Content-Disposition"))
        return read_disposition(header, value);
    if (is_word(name, "Content-Type")) {
        if (header->part->type.data || !value.size || value.size > TYPE_MAX || !is_field_text(value, false))
            return multipart_refuse(header->what_r, FAULT_AARG, "The Content-Type of a part is malformed.");
        header->part->type = value;
    } else if (is_word(name, "Content-Transfer-Encoding") && !is_word(value, "binary") &&
               !is_word(value, "8bit") && !is_word(value, "7bit")) {
        return multipart_refuse(header->what_r, FAULT_ATYPE,
                                "Parts are sent as they are, without a transfer encoding.");
    }
    return FAULT_NONE;
}

static enum fault multipart_read_line(struct part_header *header, struct bytes line)
{
    struct bytes name = take_token(&line);
    if (!name.size || !multipart_take(&line, BYTES(":")) || !is_field_text(line, true))
        return multipart_refuse(header->what_r, FAULT_AARG, "A header field of a part is malformed.");
    multipart_skip_blanks(&line);
    while (line.size && multipart_is_blank(line.data[line.size - 1]))
        line.size--;
    return multipart_read_field(header, name, line);
}

/* Reads the fields, including the empty line. */
static enum fault take_header(struct multipart *multipart, struct part_header *header)
{
    size_t room = PART_HEAD_MAX;
    for (;;) {
        struct bytes rest = multipart->rest;
        size_t most = rest.size < room ? rest.size : room;
        const char *end = most ? memmem(rest.data, most, "\r\n", 2) : NULL;
        if (!end && rest.size > room)
            return multipart_refuse(header->what_r, FAULT_ALIMIT,
                                    "The header of a part has more than 8,192 bytes.");
        if (!end)
            return multipart_refuse(header->what_r, FAULT_ABODY, "The body ends within a part.");
        struct bytes line = {rest.data, (size_t)(end - rest.data)};
        multipart_skip(&multipart->rest, line.size + 2);
        room -= line.size + 2;
        if (!line.size)
            return FAULT_NONE;
        enum fault fault = multipart_read_line(header, line);
        if (fault)
            return fault;
    }
}

enum fault multipart_next(struct multipart *multipart, struct part *part_r, bool *is_there_r,
                          const char **what_r)
{
    struct part_header header = {.arena = multipart->arena, .part = part_r, .what_r = what_r};
    *part_r = (struct part){0};
    *is_there_r = false;
    if (multipart_take(&multipart->rest, BYTES("--"))) {
        multipart_skip_blanks(&multipart->rest);
        multipart_take(&multipart->rest, BYTES("\r\n"));
        return multipart->rest.size
                   ? multipart_refuse(what_r, FAULT_AARG, "Something stands behind the last boundary.")
                   : FAULT_NONE;
    }
    enum fault fault = FAULT_FIRST(end_line(multipart, what_r), take_header(multipart, &header));
    if (!fault && !part_r->name.data)
        fault = multipart_refuse(what_r, FAULT_AARG, "A part has no name.");
    if (!fault)
        fault = take_content(multipart, &part_r->content, what_r);
    *is_there_r = !fault;
    return fault;
}
