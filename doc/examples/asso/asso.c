/* asso: associations, their members, and working groups that members of several associations join.
 *
 * A document Asso is an association: singleton Sta, what it is; items Adh, its members by their number;
 * items Inv, invitations by the digest of their token.
 * A document GT is a working group: singleton Nom, its title; items Adh, the members who take part, by
 * <number>.<association>; items Sta, the associations they come from.  Both are copies, so that a group is
 * read, and synchronised, without its associations; they are declared as such, so the server keeps them to
 * what becomes of the members and associations. */
#include <stampd.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_MOST = 64, NUMBER_MOST = 32, NAME_MOST = 200, AGE_S = 60, AGE_MOST_S = 3600 };

/* --- what an operation works on ------------------------------------------------------------------ */

/* The association that the argument `asso` names. */
static struct stampd_document *fetch_asso(struct stampd_call *call)
{
    const char *id = stampd_read_text(call, stampd_param(call), "asso", 1, ID_MOST);
    struct stampd_document *asso = stampd_fetch(call, "Asso", id);
    if (!stampd_exists(asso))
        stampd_raise(call, "NASSO", "There is no such association.", id, NULL);
    return asso;
}

/* A member's number is the part before the point of a key in a group. */
static const char *read_member(struct stampd_call *call)
{
    const char *number = stampd_read_text(call, stampd_param(call), "member", 1, NUMBER_MOST);
    if (strchr(number, '.'))
        stampd_raise(call, "AARG", "A member's number has no point.", "member", NULL);
    return number;
}

static struct stampd_document *fetch_group(struct stampd_call *call)
{
    return stampd_fetch(call, "GT", stampd_read_text(call, stampd_param(call), "group", 1, ID_MOST));
}

/* --- associations -------------------------------------------------------------------------------- */

/* {"asso","title"}: twice is as good as once. */
static enum stampd_outcome found_asso(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    const char *id = stampd_read_text(call, param, "asso", 1, ID_MOST);
    const char *title = stampd_read_text(call, param, "title", 1, NAME_MOST);

    struct stampd_document *asso = stampd_fetch(call, "Asso", id);
    if (stampd_exists(asso)) {
        const struct stampd_json *status = stampd_item_value(asso, "Sta", NULL);
        if (strcmp(stampd_read_text(call, status, "title", 0, NAME_MOST), title) != 0)
            stampd_raise(call, "AASSO", "There is another association of that id.", id, NULL);
        return STAMPD_DONE;
    }
    struct stampd_writer *status = stampd_write_object(call);
    stampd_add_text(status, "title", title);
    stampd_add_boolean(status, "active", true);
    stampd_set_written(asso, "Sta", NULL, status);
    return STAMPD_DONE;
}

/* {"asso","title","active"}: its groups follow. */
static enum stampd_outcome change_asso(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    struct stampd_document *asso = fetch_asso(call);

    struct stampd_writer *status = stampd_write_object(call);
    stampd_add_text(status, "title", stampd_read_text(call, param, "title", 1, NAME_MOST));
    stampd_add_boolean(status, "active", stampd_read_boolean_or(call, param, "active", true));
    stampd_set_written(asso, "Sta", NULL, status);
    return STAMPD_DONE;
}

/* {"asso","member","name","since"} */
static enum stampd_outcome enrol(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    const char *number = read_member(call);
    struct stampd_document *asso = fetch_asso(call);

    struct stampd_writer *member = stampd_write_object(call);
    stampd_add_text(member, "name", stampd_read_text(call, param, "name", 1, NAME_MOST));
    stampd_add_integer(member, "since", stampd_read_integer_or(call, param, "since", 1900, 2099, 2026));
    stampd_set_written(asso, "Adh", number, member);
    return STAMPD_DONE;
}

/* {"asso","member"}: who resigns takes no part in groups any more; they follow. */
static enum stampd_outcome resign(struct stampd_call *call)
{
    const char *number = read_member(call);
    stampd_remove_item(fetch_asso(call), "Adh", number);
    return STAMPD_DONE;
}

/* --- invitations: the namespace has accounts ------------------------------------------------------- */

/* What is stored of a token: it does not help whoever reads the document. */
static const char *digest_of(struct stampd_call *call, const char *token)
{
    unsigned char digest[STAMPD_SHA256_BYTES];
    stampd_sha256(stampd_bytes(token, strlen(token)), digest);
    return stampd_hex(call, stampd_bytes((const char *)digest, sizeof digest));
}

/* {"asso","member","name"} -> {"token"}: a secretary invites a person, whose account is not known yet. */
static enum stampd_outcome invite(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    const char *secretary = stampd_caller(call);
    if (!secretary || !stampd_has_role(call, "secretary"))
        return stampd_raise(call, "SSECRETARY", "Only a secretary invites.", NULL);
    stampd_limit(call, "invite", secretary, "20/h");

    const char *number = read_member(call), *token = stampd_random_token(call);
    struct stampd_document *asso = fetch_asso(call);
    struct stampd_writer *invitation = stampd_write_object(call);
    stampd_add_text(invitation, "member", number);
    stampd_add_text(invitation, "name", stampd_read_text(call, param, "name", 1, NAME_MOST));
    stampd_set_written(asso, "Inv", digest_of(call, token), invitation);

    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_text(result, "token", token);
    return stampd_result(call, result);
}

/* {"asso","token"}: whoever has signed in and brings the token is the member. */
static enum stampd_outcome accept_invitation(struct stampd_call *call)
{
    const char *token = stampd_read_text(call, stampd_param(call), "token", 1, ID_MOST);
    const char *account = stampd_caller(call);
    if (!account)
        return stampd_raise(call, "SACCOUNT", "Sign in first.", NULL);
    struct stampd_document *asso = fetch_asso(call);
    const struct stampd_json *invitation = stampd_item_value(asso, "Inv", digest_of(call, token));
    if (!invitation)
        return stampd_raise(call, "NINVITATION", "There is no such invitation.", NULL);

    struct stampd_writer *member = stampd_write_object(call);
    stampd_add_text(member, "name", stampd_read_text(call, invitation, "name", 1, NAME_MOST));
    stampd_add_integer(member, "since", stampd_now() / 10000000000000 + 2000);
    stampd_add_text(member, "account", account);
    stampd_set_written(asso, "Adh", stampd_read_text(call, invitation, "member", 1, NUMBER_MOST), member);
    stampd_remove_item(asso, "Inv", digest_of(call, token));
    return STAMPD_DONE;
}

/* What a client wants to know: the version that the association has now, also when nothing had to change. */
static enum stampd_outcome tell_version(struct stampd_call *call)
{
    const char *id = stampd_read_text(call, stampd_param(call), "asso", 1, ID_MOST);
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_integer(result, "v", stampd_version_after(call, "Asso", id));
    return stampd_result(call, result);
}

/* --- working groups ------------------------------------------------------------------------------ */

/* {"group","title","asso","member"}: the group begins with the first who joins. */
static enum stampd_outcome join(struct stampd_call *call)
{
    const char *number = read_member(call);
    struct stampd_document *asso = fetch_asso(call), *group = fetch_group(call);
    const char *id = stampd_document_id(asso);

    if (!stampd_find_item(asso, "Adh", number, NULL))
        return stampd_raise(call, "NMEMBER", "The association has no such member.", id, number, NULL);
    if (!stampd_exists(group)) {
        struct stampd_writer *name = stampd_write_object(call);
        stampd_add_text(name, "title", stampd_read_text(call, stampd_param(call), "title", 1, NAME_MOST));
        stampd_set_written(group, "Nom", NULL, name);
    }
    stampd_copy_item(group, "Adh", stampd_format(call, "%s.%s", number, id), asso, "Adh", number);
    stampd_copy_item(group, "Sta", id, asso, "Sta", NULL);
    /* A participant may follow the group, also where the namespace is closed: `syncs` of it is answered. */
    stampd_grant_read(call, "GT", stampd_document_id(group));
    return STAMPD_DONE;
}

/* Does somebody of the association still take part? */
static bool has_members_of(const struct stampd_document *group, const char *id)
{
    struct stampd_item item = {0};
    while (stampd_next_item(group, "Adh", &item)) {
        const char *point = strchr(item.key, '.');
        if (point && strcmp(point + 1, id) == 0)
            return true;
    }
    return false;
}

/* {"group","asso","member"}: the association goes with its last member. */
static enum stampd_outcome leave(struct stampd_call *call)
{
    const char *number = read_member(call);
    const char *id = stampd_read_text(call, stampd_param(call), "asso", 1, ID_MOST);
    struct stampd_document *group = fetch_group(call);

    stampd_remove_item(group, "Adh", stampd_format(call, "%s.%s", number, id));
    if (!has_members_of(group, id))
        stampd_remove_item(group, "Sta", id);
    return STAMPD_DONE;
}

/* --- reports --------------------------------------------------------------------------------------- */

static void write_quoted(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', out);
        putc(*text, out);
    }
    putc('"', out);
}

/* Comma separated values (RFC 4180), a line for each member. */
static struct stampd_bytes write_lines(struct stampd_call *call, const struct stampd_document *group)
{
    struct stampd_item item = {0};
    char *lines = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&lines, &size);
    if (!out) {
        stampd_raise(call, "XMEMORY", NULL, NULL);
        return stampd_bytes("", 0);
    }
    fputs("member,name,since\r\n", out);
    while (stampd_next_item(group, "Adh", &item)) {
        const struct stampd_json *member = stampd_item_value(group, "Adh", item.key);
        write_quoted(out, item.key);
        putc(',', out);
        write_quoted(out, stampd_read_text(call, member, "name", 0, NAME_MOST));
        fprintf(out, ",%d\r\n", (int)stampd_read_integer(call, member, "since", 0, 9999));
    }
    fclose(out);
    stampd_defer(call, free, lines); /* not memory of the call: it is freed when the request is answered */
    return stampd_bytes(lines, size);
}

/* {"group","as":"json|csv","age"}: who takes part, not older than age in seconds. */
static enum stampd_outcome report(struct stampd_call *call)
{
    static const char *const forms[] = {"json", "csv", NULL};
    const struct stampd_json *param = stampd_param(call);
    const char *id = stampd_read_text(call, param, "group", 1, ID_MOST);
    int64_t age_s = stampd_read_integer_or(call, param, "age", 1, AGE_MOST_S, AGE_S);
    bool is_csv = stampd_read_choice_or(call, param, "as", forms, 0) == 1;

    const struct stampd_document *group = stampd_read(call, "GT", id, age_s);
    if (!stampd_exists(group))
        return stampd_raise(call, "NGROUP", "There is no such working group.", id, NULL);
    if (is_csv)
        return stampd_result_text(call, "text/csv; charset=utf-8", write_lines(call, group));
    stampd_grant_read(call, "GT", id); /* the report shows all of it: it may be kept as a copy too */

    struct stampd_writer *result = stampd_write_object(call);
    struct stampd_item item = {0};
    stampd_open_array(result, "members");
    while (stampd_next_item(group, "Adh", &item)) {
        stampd_open_object(result, NULL);
        stampd_add_text(result, "key", item.key);
        stampd_add_content(result, "member", &item);
        stampd_close(result);
    }
    return stampd_result(call, result);
}

/* --- the module ------------------------------------------------------------------------------------ */

static const char *const groups[] = {"GT", NULL};

static const struct stampd_item_class asso_items[] = {
    {.name = "Sta", .is_singleton = true, .copied_to = groups},
    {.name = "Adh", .copied_to = groups, .separator = "."},
    {.name = "Inv"},
    {.name = NULL},
};

static const struct stampd_item_class group_items[] = {
    {.name = "Nom", .is_singleton = true},
    {.name = "Sta"},
    {.name = "Adh"},
    {.name = NULL},
};

static const struct stampd_document_class classes[] = {
    {.name = "Asso", .items = asso_items},
    {.name = "GT", .items = group_items},
    {.name = NULL},
};

static const struct stampd_operation operations[] = {
    {.name = "FoundAsso", .access = STAMPD_ADMIN, .work = found_asso},
    {.name = "ChangeAsso", .access = STAMPD_ADMIN, .work = change_asso, .afterwork = tell_version},
    {.name = "Resign", .access = STAMPD_PUBLIC, .seconds = 5, .work = resign, .afterwork = tell_version},
    {.name = "Enrol", .access = STAMPD_PUBLIC, .seconds = 5, .work = enrol, .afterwork = tell_version},
    {.name = "Invite", .access = STAMPD_PUBLIC, .seconds = 5, .work = invite},
    {.name = "AcceptInvitation", .access = STAMPD_PUBLIC, .seconds = 5, .work = accept_invitation},
    {.name = "JoinGroup", .access = STAMPD_PUBLIC, .seconds = 5, .work = join, .flags = STAMPD_GRANTS_READ},
    {.name = "LeaveGroup", .access = STAMPD_PUBLIC, .seconds = 5, .work = leave},
    {.name = "GroupReport",
     .access = STAMPD_PUBLIC,
     .is_read_only = true,
     .seconds = 10,
     .work = report,
     .flags = STAMPD_GRANTS_READ},
    {.name = NULL},
};

const struct stampd_module stampd_module = {
    .abi = STAMPD_ABI,
    .name = "asso",
    .version = "1.0",
    .classes = classes,
    .operations = operations,
};
