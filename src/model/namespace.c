/* namespace: codes of namespaces, and their configurations as JSON. */
#include "model/namespace.h"

#include <string.h>

#include "base/settings.h"
#include "edge/crypto/webauthn.h"
#include "model/account/account.h"
#include "model/account/letter.h"

enum { ORIGIN_MAX = 255 };

static const char *const reserved_codes[] = {"ping", "live", "ready", "metrics", "console", "doc"};
static const char *const access_words[] = {
    [ACCESS_CLOSED] = "closed", [ACCESS_READ] = "read", [ACCESS_OPEN] = "open", [ACCESS_RULES] = "rules"};
static const char *const state_words[] = {
    [NS_ON] = "on", [NS_READONLY] = "readonly", [NS_OFF] = "off", [NS_GONE] = "gone"};

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool namespace_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool namespace_is_code(const char *code)
{
    size_t size = strlen(code);
    if (size < 1 || size > 16 || !is_lower(code[0]))
        return false;
    for (size_t i = 1; i < size; i++)
        if (!is_lower(code[i]) && !namespace_is_digit(code[i]))
            return false;
    return true;
}

bool namespace_is_reserved(const char *code)
{
    for (size_t i = 0; i < COUNT_OF(reserved_codes); i++)
        if (strcmp(code, reserved_codes[i]) == 0)
            return true;
    return strncmp(code, "qm", 2) == 0;
}

bool namespace_is_database(const char *name)
{
    size_t size = strcspn(name, "@");
    if (strlen(name) > 63 || (name[size] && !settings_is_cell(settings_cell_of(name))))
        return false;
    if (size < 1 || namespace_is_digit(name[0]) || name[0] == '-')
        return false;
    for (size_t i = 0; i < size; i++)
        if (!is_lower(name[i]) && !namespace_is_digit(name[i]) && !(name[i] >= 'A' && name[i] <= 'Z') &&
            name[i] != '_' && name[i] != '-')
            return false;
    return true;
}

static bool find_word(const char *const *words, size_t count, struct bytes word, size_t *place_r)
{
    for (*place_r = 0; *place_r < count; ++*place_r)
        if (bytes_equal(word, bytes_of(words[*place_r])))
            return true;
    return false;
}

bool namespace_is_access(const char *word)
{
    size_t place;
    return find_word(access_words, COUNT_OF(access_words), bytes_of(word), &place);
}

const char *namespace_access_word(enum access_mode mode)
{
    return access_words[mode];
}

const char *namespace_state_word(enum ns_state state)
{
    return state_words[state];
}

bool namespace_find_state(const char *word, enum ns_state *state_r)
{
    size_t place;
    bool is_found = find_word(state_words, COUNT_OF(state_words), bytes_of(word), &place);
    if (is_found)
        *state_r = (enum ns_state)place;
    return is_found;
}

bool namespace_is_origin(const char *text)
{
    static const char scheme[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.";
    static const char host[] = "abcdefghijklmnopqrstuvwxyz0123456789-.", digits[] = "0123456789";
    if (strcmp(text, "*") == 0)
        return true;
    size_t size = is_lower(*text) ? strspn(text, scheme) : 0;
    if (!size || strlen(text) > ORIGIN_MAX || strncmp(text + size, "://", 3) != 0)
        return false;
    text += size + 3;
    bool is_six = *text == '[';
    size = is_six ? 1 + strspn(text + 1, "0123456789abcdef:.") : strspn(text, host);
    if (!size || (is_six && (size == 1 || text[size++] != ']')))
        return false;
    text += size;
    size = *text == ':' ? strspn(text + 1, digits) : 0;
    return !*text || (size >= 1 && size <= 5 && !text[1 + size]);
}

/* --- members --- */

/* One value, as it is in the struct; false: malformed, and nothing is set. */
typedef bool reader(struct arena *arena, const struct json *value, struct ns_conf *conf);

static bool read_access(struct arena *arena UNUSED, const struct json *value, struct ns_conf *conf)
{
    size_t place;
    bool is_one =
        value->kind == JSON_STRING && find_word(access_words, COUNT_OF(access_words), value->value, &place);
    if (is_one)
        conf->mode = (enum access_mode)place;
    return is_one;
}

static bool read_state(struct arena *arena UNUSED, const struct json *value, struct ns_conf *conf)
{
    int64_t number;
    bool is_one = json_is_i64(value, &number) && number >= NS_ON && number <= NS_GONE;
    conf->state = is_one ? (enum ns_state)number : NS_OFF;
    return is_one;
}

static bool namespace_read_text(const struct json *value, size_t most, struct bytes *text_r)
{
    bool is_one = value->kind == JSON_STRING && value->value.size <= most;
    if (is_one)
        *text_r = value->value;
    return is_one;
}

static bool read_message(struct arena *arena UNUSED, const struct json *value, struct ns_conf *conf)
{
    return namespace_read_text(value, NAMESPACE_MESSAGE_MOST, &conf->message);
}

static bool read_label(struct arena *arena UNUSED, const struct json *value, struct ns_conf *conf)
{
    return namespace_read_text(value, NAMESPACE_LABEL_MOST, &conf->label);
}

static bool read_theme(struct arena *arena UNUSED, const struct json *value, struct ns_conf *conf)
{
    return namespace_read_text(value, NAMESPACE_THEME_MOST, &conf->theme);
}

static bool namespace_read_options(struct arena *arena, const struct json *value, struct ns_conf *conf)
{
    struct json *root;
    bool is_one = value->kind == JSON_OBJECT && value->text.size <= NAMESPACE_OPTIONS_MOST &&
                  json_is_tree(arena, value->text, NAMESPACE_OPTIONS_DEPTH, 1, &root);
    if (is_one)
        conf->options = value->text;
    return is_one;
}

static bool read_origins(struct arena *arena, const struct json *value, struct ns_conf *conf)
{
    if (value->kind != JSON_ARRAY || value->is_shallow || value->count > NAMESPACE_ORIGINS_MOST)
        return false;
    for (const struct json *one = value->first; one; one = one->next)
        if (one->kind != JSON_STRING ||
            !namespace_is_origin(arena_copy(arena, one->value.data, one->value.size)))
            return false;
    conf->origins = value;
    return true;
}

static bool read_quotas(struct arena *arena, const struct json *value, struct ns_conf *conf)
{
    return quotas_read(arena, value, &conf->quotas);
}

static bool read_workers(struct arena *arena, const struct json *value, struct ns_conf *conf)
{
    bool is_read = worker_queues_read(arena, value, &conf->workers);
    if (is_read)
        conf->workers_text = value->text;
    return is_read;
}

static bool read_records(struct arena *arena, const struct json *value, struct ns_conf *conf)
{
    bool is_read = record_rules_read(arena, value, &conf->records);
    if (is_read)
        conf->records_text = value->text;
    return is_read;
}

static bool read_database(struct arena *arena, const struct json *value, struct ns_conf *conf)
{
    bool is_one = value->kind == JSON_STRING &&
                  namespace_is_database(arena_copy(arena, value->value.data, value->value.size));
    if (is_one)
        conf->database = value->value;
    return is_one;
}

static bool read_encrypted(struct arena *arena UNUSED, const struct json *value, struct ns_conf *conf)
{
    conf->is_encrypted = value->kind != JSON_FALSE;
    return value->kind == JSON_TRUE || value->kind == JSON_FALSE;
}

static bool read_spread(struct arena *arena UNUSED, const struct json *value, struct ns_conf *conf)
{
    conf->is_spread = value->kind != JSON_FALSE;
    return value->kind == JSON_TRUE || value->kind == JSON_FALSE;
}

static bool is_list_of_codes(struct arena *arena, const struct json *value)
{
    if (value->kind != JSON_ARRAY || value->is_shallow || value->count > NAMESPACE_READERS_MOST)
        return false;
    for (const struct json *one = value->first; one; one = one->next)
        if (one->kind != JSON_STRING ||
            !namespace_is_code(arena_copy(arena, one->value.data, one->value.size)))
            return false;
    return true;
}

static bool read_reads(struct arena *arena, const struct json *value, struct ns_conf *conf)
{
    bool is_one = is_list_of_codes(arena, value);
    if (is_one)
        conf->reads = value;
    return is_one;
}

static bool read_readers(struct arena *arena, const struct json *value, struct ns_conf *conf)
{
    bool is_one = is_list_of_codes(arena, value);
    if (is_one)
        conf->readers = value;
    return is_one;
}

bool namespace_is_listed(const struct json *codes, struct bytes code)
{
    for (const struct json *one = codes ? codes->first : NULL; one; one = one->next)
        if (bytes_equal(one->value, code))
            return true;
    return false;
}

/* --- the member accounts --- */

static bool read_registration(const struct json *value, struct ns_accounts *accounts)
{
    static const char *const words[] = {[REGISTRATION_CLOSED] = "closed",
                                        [REGISTRATION_INVITATION] = "invitation",
                                        [REGISTRATION_OPEN] = "open"};
    size_t place;
    bool is_one = value->kind == JSON_STRING && find_word(words, COUNT_OF(words), value->value, &place);
    if (is_one)
        accounts->registration = (enum ns_registration)place;
    return is_one;
}

static bool namespace_read_number(const struct json *value, int64_t least, int64_t most, int64_t *number_r)
{
    return json_is_i64(value, number_r) && *number_r >= least && *number_r <= most;
}

static bool read_passkeys(struct arena *arena, const struct json *value, struct ns_accounts *accounts)
{
    struct relying_party *party = relying_party_read(arena, value);
    accounts->passkeys = webauthn_is_there() ? party : NULL;
    return party != NULL;
}

static bool read_confirm(const struct json *value, struct ns_accounts *accounts)
{
    static const char *const words[] = {"optional", "required"};
    size_t place;
    bool is_one = value->kind == JSON_STRING && find_word(words, COUNT_OF(words), value->value, &place);
    accounts->needs_confirmation = is_one && place;
    return is_one;
}

static bool read_flag(const struct json *value, bool *flag_r)
{
    *flag_r = value->kind == JSON_TRUE;
    return value->kind == JSON_TRUE || value->kind == JSON_FALSE;
}

static bool read_whois(const struct json *value, struct ns_accounts *accounts)
{
    static const char *const words[] = {[WHOIS_NOBODY] = "nobody", [WHOIS_ACCOUNT] = "account"};
    static const struct bytes prefix = BYTES("role:");
    size_t place;
    if (value->kind != JSON_STRING)
        return false;
    struct bytes word = value->value;
    if (find_word(words, COUNT_OF(words), word, &place)) {
        accounts->whois = (enum ns_whois)place;
        return true;
    }
    if (word.size <= prefix.size || memcmp(word.data, prefix.data, prefix.size) != 0)
        return false;
    accounts->whois = WHOIS_ROLE;
    accounts->whois_role = (struct bytes){word.data + prefix.size, word.size - prefix.size};
    return account_is_role(accounts->whois_role);
}

static bool read_whois_by(const struct json *value, struct ns_accounts *accounts)
{
    static const char *const words[] = {"name", "address"};
    size_t place;
    bool is_one = value->kind == JSON_STRING && find_word(words, COUNT_OF(words), value->value, &place);
    accounts->has_whois_by_address = is_one && place;
    return is_one;
}

static bool read_accounts_member(struct arena *arena, const struct json *member, struct ns_accounts *accounts)
{
    if (bytes_equal(member->name, BYTES("passkeys")))
        return read_passkeys(arena, member, accounts);
    if (bytes_equal(member->name, BYTES("confirm")))
        return read_confirm(member, accounts);
    if (bytes_equal(member->name, BYTES("mail_login")))
        return read_flag(member, &accounts->has_mail_login);
    if (bytes_equal(member->name, BYTES("whois")))
        return read_whois(member, accounts);
    if (bytes_equal(member->name, BYTES("whois_by")))
        return read_whois_by(member, accounts);
    if (bytes_equal(member->name, BYTES("mail")))
        return letter_read_templates(arena, member->text, &accounts->mail);
    if (bytes_equal(member->name, BYTES("issuers")))
        return issuer_read(arena, member, &accounts->issuers);
    if (bytes_equal(member->name, BYTES("registration")))
        return read_registration(member, accounts);
    if (bytes_equal(member->name, BYTES("session_days")))
        return namespace_read_number(member, 1, NAMESPACE_SESSION_DAYS_MOST, &accounts->session_days);
    if (bytes_equal(member->name, BYTES("sessions_most")))
        return namespace_read_number(member, 1, NAMESPACE_SESSIONS_MOST, &accounts->sessions_most);
    if (bytes_equal(member->name, BYTES("anonymous_days")))
        return namespace_read_number(member, 0, NAMESPACE_SESSION_DAYS_MOST, &accounts->anonymous_days);
    return bytes_equal(member->name, BYTES("anonymous")) && read_flag(member, &accounts->has_anonymous);
}

static bool read_accounts(struct arena *arena, const struct json *value, struct ns_conf *conf)
{
    struct ns_accounts accounts = {.is_on = true, .session_days = 30, .sessions_most = 32};
    if (value->kind != JSON_OBJECT || value->is_shallow)
        return false;
    for (const struct json *member = value->first; member; member = member->next)
        if (!read_accounts_member(arena, member, &accounts))
            return false;
    conf->accounts = accounts;
    conf->accounts_text = value->text;
    return true;
}

static bool is_public(enum access_mode mode)
{
    return mode == ACCESS_READ || mode == ACCESS_OPEN;
}

/* --- all members --- */

#define CODES_EXPECTED "An array of at most 32 codes of namespaces is expected."

static const struct ns_member {
    const char *name, *expected;
    reader *read;
} members[] = {
    {"access", "One of closed, read, open, rules is expected.", read_access},
    {"accounts",
     "An object is expected: registration (open, invitation, closed), anonymous, anonymous_days, "
     "session_days, "
     "sessions_most, issuers, confirm (optional, required), passkeys (rp, name, origins), "
     "mail_login, whois (nobody, account, role:NAME), whois_by (name, address), " LETTER_EXPECTED ".",
     read_accounts},
    {"label", "A text of at most 200 bytes is expected.", read_label},
    {"message", "A text of at most 1000 bytes is expected.", read_message},
    {"options", "An object of at most 4096 bytes and 16 levels is expected.", namespace_read_options},
    {"origins", "An array of at most 32 origins is expected, each * or like https://host:port.",
     read_origins},
    {"quotas", QUOTAS_EXPECTED, read_quotas},
    {"readers", CODES_EXPECTED, read_readers},
    {"reads", CODES_EXPECTED, read_reads},
    {"records", RECORD_RULES_EXPECTED, read_records},
    {"spread", "True or false is expected.", read_spread},
    {"state", "An integer is expected: 0 on, 1 read-only, 2 off, 3 gone.", read_state},
    {"theme", "A text of at most 64 bytes is expected.", read_theme},
    {"workers", WORKER_QUEUES_EXPECTED, read_workers},
    {"database", NULL, read_database}, /* only stampctl changes these */
    {"encrypted", NULL, read_encrypted},
};

const char *namespace_refuse_member(struct arena *arena, struct bytes name, const struct json *value)
{
    struct ns_conf conf;
    if (bytes_equal(name, BYTES("accounts")) && !webauthn_is_there() && json_member(value, "passkeys"))
        return WEBAUTHN_MISSING;
    for (size_t i = 0; i < COUNT_OF(members); i++)
        if (members[i].expected && bytes_equal(name, bytes_of(members[i].name)))
            return members[i].read(arena, value, &conf) ? NULL : members[i].expected;
    return "One of " NAMESPACE_MEMBERS " is expected.";
}

/* --- configurations --- */

struct ns_conf namespace_read(struct arena *arena, struct bytes content)
{
    static const struct json_limits limits = {.depth = 32, .tree_depth = 2, .nodes = 4096};
    struct ns_conf result = {.mode = ACCESS_CLOSED};
    struct json *object;
    struct json_problem problem;
    if (!content.data)
        return result;
    if (json_read(arena, content, &limits, &object, &problem) || object->kind != JSON_OBJECT)
        return (struct ns_conf){.state = NS_OFF, .wrong = ""};
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        const struct json *value = json_member(object, members[i].name);
        if (value && !members[i].read(arena, value, &result) && !result.wrong)
            result.wrong = members[i].name;
    }
    if (json_member(object, "quotas") && !result.quotas && result.state < NS_READONLY) {
        result.state = NS_READONLY;
        result.message = BYTES("The quotas in its configuration are malformed.");
    }
    if (result.accounts.passkeys)
        result.accounts.passkeys->listed = result.origins;
    if (json_member(object, "accounts") && is_public(result.mode)) { /* also a malformed one */
        result.mode = ACCESS_CLOSED;
        result.wrong = result.wrong ? result.wrong : "accounts";
    }
    return result;
}

static const struct json *namespace_read_object(struct arena *arena, struct bytes text)
{
    struct json *root;
    if (!json_is_tree(arena, text, 32, 1, &root) || root->kind != JSON_OBJECT)
        return NULL;
    return root;
}

const char *namespace_refuse_content(struct arena *arena, struct bytes before, struct bytes after,
                                     const char **member_r)
{
    static const struct json_limits limits = {.depth = 32, .tree_depth = 2, .nodes = 4096};
    const struct json *old = before.data ? namespace_read_object(arena, before) : NULL;
    struct json *new;
    struct json_problem problem;
    struct ns_conf conf = {0};
    *member_r = "";
    if (!after.data || bytes_equal(before, after))
        return NULL;
    if (json_read(arena, after, &limits, &new, &problem) != FAULT_NONE || new->kind != JSON_OBJECT)
        return "An object of the members of a configuration is expected.";
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        const struct json *value = json_member(new, members[i].name),
                          *kept = json_member(old, members[i].name);
        *member_r = members[i].name;
        if (value && !(kept && bytes_equal(kept->text, value->text)) && !members[i].read(arena, value, &conf))
            return members[i].expected ? members[i].expected : "Only stampctl changes it.";
    }
    *member_r = "accounts";
    return namespace_refuse_change(arena, NO_BYTES, before) ? NULL
                                                            : namespace_refuse_change(arena, NO_BYTES, after);
}

const char *namespace_refuse_change(struct arena *arena, struct bytes before, struct bytes after)
{
    struct ns_conf conf = {0};
    const struct json *old = before.data ? namespace_read_object(arena, before) : NULL;
    const struct json *new = after.data ? namespace_read_object(arena, after) : NULL;
    const struct json *access = json_member(new, "access");
    if (json_member(old, "accounts") && !json_member(new, "accounts"))
        return "The member cannot be removed while there may be accounts: close the registration.";
    if (json_member(new, "accounts") && access && read_access(arena, access, &conf) && is_public(conf.mode))
        return "A namespace with accounts needs the access rules or closed.";
    return NULL;
}

void namespace_write_shown(const struct ns_conf *conf, struct builder *builder)
{
    json_add_filled(builder, "message", conf->message);
    json_add_filled(builder, "label", conf->label);
    json_add_filled(builder, "theme", conf->theme);
    if (conf->options.size)
        builder_printf(builder, ",\"options\":%.*s", (int)conf->options.size, conf->options.data);
}

static void namespace_add_member(struct builder *builder, struct bytes name, struct bytes value)
{
    if (builder->size > 1)
        builder_add_text(builder, ",");
    json_add_string(builder, name);
    builder_add_text(builder, ":");
    builder_add_bytes(builder, value);
}

struct bytes namespace_set_json(struct arena *arena, struct bytes text, const char *name, struct bytes value)
{
    const struct json *object = text.data ? namespace_read_object(arena, text) : NULL;
    struct builder builder = {0};
    bool is_set = !value.data;
    builder_add_text(&builder, "{");
    for (const struct json *member = object ? object->first : NULL; member; member = member->next) {
        if (!bytes_equal(member->name, bytes_of(name))) {
            namespace_add_member(&builder, member->name, member->text);
        } else if (!is_set) {
            namespace_add_member(&builder, member->name, value);
            is_set = true;
        }
    }
    if (!is_set)
        namespace_add_member(&builder, bytes_of(name), value);
    builder_add_text(&builder, "}");
    return builder_take(&builder, arena);
}

struct bytes namespace_set_member(struct arena *arena, struct bytes text, const char *name, const char *value)
{
    struct builder string = {0};
    if (value)
        json_add_string(&string, bytes_of(value));
    struct bytes result = namespace_set_json(arena, text, name, value ? builder_bytes(&string) : NO_BYTES);
    builder_free(&string);
    return result;
}
