# c-text: what the checks share: a line of C without its comments and without what its literals say.
#
# A check reads its program behind this one.  Set in_comment to 0 at the first line of each file.
function code_of(line,    out, i, size, one, two, quote)
{
    out = ""
    size = length(line)
    quote = ""
    for (i = 1; i <= size; i++) {
        one = substr(line, i, 1)
        two = substr(line, i, 2)
        if (in_comment) {
            if (two == "*/") {
                in_comment = 0
                out = out " "
                i++
            }
        } else if (quote != "") {
            if (one == "\\")
                i++
            else if (one == quote) {
                out = out one
                quote = ""
            }
        } else if (two == "/*") {
            in_comment = 1
            i++
        } else if (two == "//") {
            break
        } else {
            if (one == "\"" || one == "'")
                quote = one
            out = out one
        }
    }
    return out
}

# One finding: where, what, and how to mend it.
function found(file, line, what)
{
    printf "%s:%d: %s\n", file, line, what
    findings++
}
