-- load.lua: what wrk sends.  The environment tells: BENCH_KIND and what the kind needs.
--   fixed   the same request always: BENCH_BODY names a file with its JSON body, absent: a GET;
--           BENCH_ETAG: only what is not that version
--   BENCH_BEARER  the token of every request
--   read    one document of BENCH_CLASS, its id a number up to BENCH_COUNT chosen at random
--   find    BENCH_TEMPLATE with a number up to BENCH_COUNT chosen at random in place of @
--   commit  two items of such a document get fresh content
--   entry   a content of ten members, put
--   commit8 the same of eight documents, as far from each other as they can be
-- With BENCH_STEP ids are multiples of it; with BENCH_NAMESPACES each request goes to one of so many namespaces, chosen
-- at random: a ~ in the path is its number.
-- With BENCH_ENOUGH it writes a line when so many answers have come.
-- At the end one line: requests, microseconds, p50, p99 and p99.9 in microseconds, answers that were not 200, broken.
local kind = os.getenv("BENCH_KIND")
local class = os.getenv("BENCH_CLASS")
local count = tonumber(os.getenv("BENCH_COUNT") or 1)
local step = tonumber(os.getenv("BENCH_STEP") or 1)
local namespaces = tonumber(os.getenv("BENCH_NAMESPACES") or 0)

if kind ~= "fixed" or os.getenv("BENCH_BODY") then -- a GET has none, and nginx answers by itself only requests that have none
    wrk.headers["Content-Type"] = "application/json"
end
if os.getenv("BENCH_ETAG") then
    wrk.headers["If-None-Match"] = os.getenv("BENCH_ETAG")
end
if os.getenv("BENCH_BEARER") then
    wrk.headers["Authorization"] = "Bearer " .. os.getenv("BENCH_BEARER")
end
if os.getenv("BENCH_BODY") then
    local file = assert(io.open(os.getenv("BENCH_BODY"), "rb"))
    wrk.method = "POST"
    wrk.body = file:read("*a")
    file:close()
end

local random = math.random
local pool
local paths = {}
local requests = {}

local function digits(size)
    local parts = {}
    for i = 1, size / 9 do
        parts[i] = string.format("%09d", random(0, 999999999))
    end
    return table.concat(parts)
end

function init()
    math.randomseed(os.time() + tonumber(tostring({}):match("0x(%x+)"), 16) % 1000000)
    random()
    pool = digits(9000)
    for i = 1, namespaces do
        paths[i] = wrk.path:gsub("~", i)
        requests[i] = wrk.format(nil, paths[i])
    end
end

-- Where the next request goes; nil: where all go.
local function path()
    return namespaces > 0 and paths[random(1, namespaces)] or nil
end

-- One of the ids.
local function name()
    return string.format("%d", random(1, count) * step)
end

local function spread()
    return requests[random(1, namespaces)]
end

-- A JSON string of 200 bytes.
local function content()
    local start = random(1, 8000)
    return '"' .. pool:sub(start, start + 179) .. digits(18) .. '"'
end

local function read()
    return wrk.format("POST", path(), nil, '{"param":{"docs":[{"c":"' .. class .. '","id":"' .. name() .. '"}]}}')
end

local function find()
    local value = string.format("%d", random(1, count))
    return wrk.format("POST", nil, nil, (os.getenv("BENCH_TEMPLATE"):gsub("@", value)))
end

local function change(id)
    local first = random(1, 5)
    local second = (first - 1 + random(1, 4)) % 5 + 1
    return '{"c":"' .. class .. '","id":"' .. id .. '","items":[{"c":"Line","k":"' .. first .. '","j":' .. content() ..
        '},{"c":"Line","k":"' .. second .. '","j":' .. content() .. '}]}'
end

local function commit()
    return wrk.format("POST", path(), nil, '{"param":{"docs":[' .. change(name()) .. ']}}')
end

-- A content of ten members, as validates.py declares it.
local function entry()
    return wrk.format("POST", path(), nil, '{"param":{"docs":[{"c":"' .. class .. '","id":"' .. name() ..
        '","items":[{"c":"Main","j":{"title":"t' .. digits(18) .. '","text":"' .. digits(18) .. '","code":"AB-' .. string.format("%06d", random(0, 999999)) ..
        '","price":' .. random(1, 9999) .. '.25,"count":' .. random(1, 9999) .. ',"state":"open","day":"2026-11-22","tags":["a","b' ..
        random(1, 999) .. '","c"],"owner":null,"is_open":true}}]}]}}')
end

local function commit8()
    local changes = {}
    local distance = math.floor(count / 8)
    local id = random(1, distance)
    for i = 0, 7 do
        changes[i + 1] = change(id + i * distance)
    end
    return wrk.format("POST", nil, nil, '{"param":{"docs":[' .. table.concat(changes, ",") .. ']}}')
end

-- Without this function wrk sends one request made at the start, at no cost.
if kind ~= "fixed" or namespaces > 0 then
    request = ({fixed = spread, read = read, find = find, commit = commit, commit8 = commit8, entry = entry})[kind]
end

if os.getenv("BENCH_ENOUGH") then
    local missing = tonumber(os.getenv("BENCH_ENOUGH"))
    function response()
        missing = missing - 1
        if missing == 0 then
            io.write("ENOUGH\n")
            io.flush()
        end
    end
end

function done(summary, latency)
    local errors = summary.errors
    io.write(string.format("FIGURES %d %d %d %d %d %d %d\n", summary.requests, summary.duration,
        latency:percentile(50), latency:percentile(99), latency:percentile(99.9), errors.status,
        errors.connect + errors.read + errors.write + errors.timeout))
end
