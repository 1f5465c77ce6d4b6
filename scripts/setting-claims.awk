# setting-claims.awk: compares numbers that stand beside the name of a setting with its row in settings_table.h; for check-claims.
#
# In pages, manual pages and comments these say what a setting's default is:
#
#   `x_s` (10 s)   `x_s` (default: ten seconds)   `x_s` (10 s by default; …)   `x_s`, 10 s by default   the default of `x_s` is 10 s
#   `x_s` is 10 s by default   ten seconds (`x_s`)   `x_s`, ten seconds;   `limit_x` keys (5,000)   5,000 keys (`limit_x`)   a cell under "default" in the row of `x_s`
#
# and these must be within its limits:   `x_s = 10`   x_s = 10 in an example   `x_s` (from 1 to 100)
#
# The first file is settings_table.h.  Comments name settings without `backquotes`.  Numbers may be words, and have other units of the same kind:
# a minute is 60 of a setting whose name ends in _s.  MB and MiB are not told apart.

function wrong(what)
{
    printf "%s:%d: %s\n", page, begins, what
    findings++
}

BEGIN {
    count = split("one two three four five six seven eight nine ten eleven twelve", word_of, " ")
    for (i = 1; i <= count; i++)
        amount_of[word_of[i]] = i
    amount_of["a"] = amount_of["an"] = 1
    amount_of["fifteen"] = 15
    amount_of["twenty"] = 20
    amount_of["thirty"] = 30
    amount_of["sixty"] = 60
    set_units("ms millisecond milliseconds", "time", 0.001)
    set_units("s second seconds", "time", 1)
    set_units("min minute minutes", "time", 60)
    set_units("h hour hours", "time", 3600)
    set_units("day days", "time", 86400)
    set_units("week weeks", "time", 604800)
    set_units("byte bytes", "size", 1)
    set_units("kB KB KiB", "size", 1024)
    set_units("MB MiB", "size", 1048576)
    set_units("GB GiB", "size", 1073741824)
    set_units("%", "share", 1)
}

function set_units(words, kind, factor,    list, n, i)
{
    n = split(words, list, " ")
    for (i = 1; i <= n; i++) {
        kind_of[list[i]] = kind
        factor_of[list[i]] = factor
    }
}

# --- the table ---

FNR == NR {
    if (/^NUMBER\(/) {
        line = $0
        sub(/^NUMBER\(/, "", line)
        split(line, cell, /, */)
        name = cell[1]
        default_of[name] = cell[2] + 0
        least_of[name] = cell[3] + 0
        most_of[name] = cell[4] + 0
        unit = cell[5]
        gsub(/"/, "", unit)
        unit_of[name] = unit
    }
    next
}

# --- what a number is ---

function is_number(text)
{
    return text ~ /^[0-9][0-9,]*(\.[0-9]+)?$/ || text in amount_of
}

function amount(text)
{
    if (text in amount_of)
        return amount_of[text]
    gsub(/,/, "", text)
    return text + 0
}

# Without what stands before or behind it in a sentence.
function bare(text)
{
    gsub(/^[(*]+|[).,;:*]+$/, "", text)
    return text
}

# "60 s" of a setting in minutes is 1; a unit of another kind makes a number that is none of the setting's: NONE.
function in_units(number, unit, name,    own)
{
    own = unit_of[name]
    if (!(unit in kind_of) || !(own in kind_of))
        return number
    if (kind_of[unit] != kind_of[own])
        return "none"
    return number * factor_of[unit] / factor_of[own]
}

function shown(name)
{
    return default_of[name] (unit_of[name] ~ /^[A-Za-z%]+$/ ? " " unit_of[name] : "")
}

function judge_default(name, number, unit,    value)
{
    value = in_units(amount(number), unit, name)
    if (value == "none" || value == default_of[name] || (value > 0 && is_other_prefix(value, name)))
        return
    wrong("the default of `" name "` is " shown(name) ", not " number (unit in kind_of ? " " unit : ""))
}

# 1,000 kB are a MB, too.
function is_other_prefix(value, name,    ratio)
{
    if (!(unit_of[name] in kind_of) || kind_of[unit_of[name]] != "size")
        return 0
    for (ratio = value / default_of[name]; ratio > 0.9 && ratio < 1; ratio *= 1.024)
        if (ratio > 0.9999)
            break
    return ratio > 0.9999 && ratio < 1.0001
}

function judge_limits(name, number, unit,    value)
{
    value = in_units(amount(number), unit, name)
    if (value != "none" && (value < least_of[name] || value > most_of[name]))
        wrong("`" name "` is from " least_of[name] " to " most_of[name] ", so it cannot be " number)
}

# --- sentences ---

# The setting that this word names; "": none.
function setting_in(text)
{
    text = bare(text)
    if (text ~ /^`[a-z0-9_]+`$/)
        text = substr(text, 2, length(text) - 2)
    else if (!is_comment || text !~ /_/)
        return ""
    return text in default_of ? text : ""
}

# What stands behind the name at place i.
function judge_behind(w, n, i, name,    next_one, at)
{
    if (w[i] ~ /[`a-z]$/ && w[i + 1] ~ /^\(/) {
        next_one = w[i + 1]
        sub(/^\(/, "", next_one)
        at = i + 1
        if (bare(next_one) == "from" && is_number(bare(w[i + 2])) && w[i + 3] == "to" && is_number(bare(w[i + 4]))) {
            if (amount(bare(w[i + 2])) != least_of[name] || amount(bare(w[i + 4])) != most_of[name])
                wrong("`" name "` is from " least_of[name] " to " most_of[name])
            return
        }
        if (bare(next_one) ~ /^(default|by)$/) {
            at++
            if (bare(w[at]) == "default" || w[at] == "is")
                at++
            next_one = w[at]
            if (is_number(bare(next_one)))
                judge_default(name, bare(next_one), bare(w[at + 1]))
        } else if (is_number(bare(next_one)) && bare(next_one) !~ /^[45][0-9][0-9]$/ && bare(next_one) !~ /^an?$/ &&
                   (next_one ~ /[).;:,]$/ || bare(w[at + 1]) in kind_of || w[at + 1] == "by"))
            judge_default(name, bare(next_one), bare(w[at + 1]))
    } else if (w[i] ~ /,$/ && is_number(w[i + 1])) {
        if (w[i + 2] ~ /[).,;:]$/ && bare(w[i + 2]) in kind_of)
            judge_default(name, w[i + 1], bare(w[i + 2]))
        else if ((w[i + 2] == "by" && w[i + 3] ~ /^default/) || (w[i + 2] in kind_of && w[i + 3] == "by" && w[i + 4] ~ /^default/))
            judge_default(name, w[i + 1], w[i + 2])
    } else if (w[i + 1] ~ /^[a-z]+$/ && w[i + 2] ~ /^\([0-9][0-9,]*\)/) {
        if (w[i + 2] !~ /^\([45][0-9][0-9]\)/)
            judge_default(name, bare(w[i + 2]), "")
    } else if (w[i + 1] == "is" && is_number(bare(w[i + 2]))) {
        if ((w[i - 1] == "of" && w[i - 2] ~ /^default$/) || (w[i + 3] == "by" && w[i + 4] ~ /^default/) ||
            (w[i + 3] in kind_of && w[i + 4] == "by" && w[i + 5] ~ /^default/))
            judge_default(name, bare(w[i + 2]), bare(w[i + 3]))
    }
}

# "ten seconds (`x_s`)", "5,000 keys (`limit_x`)".  "a third of 5,000 keys (`limit_x`)" and the like are somebody's own.
function judge_before(w, i, name,    at, before)
{
    if (w[i] !~ /^\(/ || w[i] !~ /[),;.:]$/)
        return
    if (w[i - 1] in kind_of && is_number(w[i - 2]))
        at = i - 2
    else if (is_number(w[i - 1]) && w[i - 1] !~ /^an?$/)
        at = i - 1
    else if (is_number(w[i - 2]) && w[i - 2] !~ /^(an?|one)$/ && w[i - 1] ~ /^[a-z]+s$/)
        at = i - 2
    else
        return
    before = w[at - 1]
    if (before ~ /^(of|half|times|quarter|third|to|by|-|–|…)$/ || w[at] ~ /^[45][0-9][0-9]$/ || (before ~ /^(and|or)$/ && is_number(bare(w[at - 2]))))
        return
    judge_default(name, w[at], w[at + 1])
}

function judge(text,    w, n, i, name, value)
{
    n = split(text, w, " ")
    for (i = 1; i <= n; i++) {
        if (w[i] ~ /^`[a-z0-9_]+$/ && w[i + 1] == "=" && w[i + 2] ~ /^[0-9]+`/) {
            name = substr(w[i], 2)
            value = w[i + 2]
            sub(/`.*/, "", value)
            if (name in default_of)
                judge_limits(name, value, "")
            continue
        }
        name = setting_in(w[i])
        if (name == "")
            continue
        judge_behind(w, n, i, name)
        judge_before(w, i, name)
    }
}

# --- tables: the column whose head is "default" ---

function judge_row(row,    cell, n, i, name, part)
{
    n = split(row, cell, "|")
    if (!in_table) {
        default_column = 0
        for (i = 2; i < n; i++)
            if (cell[i] ~ /^ *[Dd]efault *$/)
                default_column = i
    }
    in_table = 1
    gsub(/ /, "", cell[2])
    name = setting_in(cell[2])
    if (!default_column || name == "")
        return
    split(cell[default_column], part, " ")
    if (is_number(bare(part[1])))
        judge_default(name, bare(part[1]), bare(part[2]))
}

# --- files ---

function end_paragraph()
{
    if (text != "")
        judge(text)
    text = ""
}

function add(words)
{
    if (text == "")
        begins = FNR
    text = text (text == "" ? "" : " ") words
}

FNR == 1 {
    end_paragraph()
    page = FILENAME
    in_fence = in_comment = in_table = 0
    is_manual = page ~ /\.[1-8]$/
    is_comment = page !~ /\.md$/ && !is_manual
}

# Manual pages: a name in another font, alone or with what follows it.
is_manual {
    gsub(/\\-/, "-")
    while (match($0, /\\f[BI][a-z0-9_]+\\f[RP]/)) {
        name = substr($0, RSTART + 3, RLENGTH - 6)
        $0 = substr($0, 1, RSTART - 1) "`" name "`" substr($0, RSTART + RLENGTH)
    }
    if (/^\.(B|I|BR|IR|RB|RI) /) {
        joined = ""
        for (i = 2; i <= NF; i++) {
            part = $i
            gsub(/"/, "", part)
            joined = joined ($1 ~ /^\.[BI]$/ && i > 2 ? " " : "") (part in default_of ? "`" part "`" : part)
        }
        add(joined)
        next
    }
    if (/^\./) {
        end_paragraph()
        next
    }
    add($0)
    next
}

# Comments.
is_comment {
    line = $0
    if (page ~ /\.sql$/) {
        if (line !~ /^ *--/) {
            end_paragraph()
            next
        }
        sub(/^ *--+/, "", line)
    } else if (in_comment) {
        sub(/^ *\*/, "", line)
    } else if (match(line, /\/\*/)) {
        line = substr(line, RSTART + 2)
        in_comment = 1
    } else {
        end_paragraph()
        next
    }
    ends = page !~ /\.sql$/ && match(line, /\*\//)
    if (ends)
        line = substr(line, 1, RSTART - 1)
    add(line)
    if (ends) {
        in_comment = 0
        end_paragraph()
    }
    next
}

/^ *```/ {
    end_paragraph()
    in_fence = !in_fence
    next
}
in_fence {
    begins = FNR
    if ($2 == "=" && $1 in default_of && $3 ~ /^[0-9]+$/)
        judge_limits($1, $3, "")
    next
}
/^\|/ {
    end_paragraph()
    begins = FNR
    judge_row($0)
    judge($0)
    next
}
{
    in_table = 0
}
NF == 0 || /^ *(-|[0-9]+\.|#+) / {
    end_paragraph()
}
NF {
    add($0)
}
END {
    end_paragraph()
    if (findings)
        exit 1
}
