-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- rocelab for Wireshark 4.0 to 4.6 (Lua 5.2 to 5.4): a post-dissector. It reads what rxedump and
-- `rocelab annotate` wrote into packet comments (docs/formats/rxedump.md), and verifies the
-- invariant CRC of any RoCE packet. It does not follow PSNs: `rocelab annotate` does.
--
-- Install: `rocelab wireshark install`, or copy this file to the folder that Wireshark's
-- Help > About > Folders calls "Personal Lua Plugins".

local rocelab = Proto("rocelab", "Soft RoCE: driver costs, findings and ICRC (rocelab)")

-- fields -------------------------------------------------------------------------------------

-- tables/renew.py: stages
local STAGES = {
    { "wqe", "take the work request and choose the packet's opcode" },
    { "alloc", "get the address vector and allocate the packet's buffer" },
    { "bth", "write the BTH and the extended headers" },
    { "route", "find the route to the peer" },
    { "net", "write the UDP and IP headers, or GRH and Ethernet" },
    { "copy", "copy the message into the packet / copy the message out of the packet" },
    { "icrc", "compute the invariant CRC / check the invariant CRC" },
    { "xmit", "IP output, neighbour and queueing discipline, up to the device" },
    { "parse", "copy a large packet into one piece, check the headers and find the queue pair" },
    { "queue", "wait until the queue pair's task takes the packet" },
    { "exec", "run the responder or completer, without copy, cqe and reply" },
    { "cqe", "post the completion" },
    { "reply", "send the answer (an ACK or data), which is also a packet sent" },
}
local ENCAPSULATION = { "bth", "route", "net", "icrc" }
local DECAPSULATION = { "parse", "icrc" }
-- tables/renew.py: end

-- Wireshark's own values and words for checksums
local BAD, GOOD, UNVERIFIED = 0, 1, 2
local STATUS = { [BAD] = "Bad", [GOOD] = "Good", [UNVERIFIED] = "Unverified" }

local field = {
    status = ProtoField.uint8("rocelab.icrc.status", "ICRC status", base.DEC, STATUS),
    expected = ProtoField.uint32("rocelab.icrc.expected", "ICRC expected", base.HEX, nil, nil,
        "In the order of the wire, as infiniband.invariant.crc shows it"),
    fecn = ProtoField.bool("rocelab.fecn", "FECN", 8, nil, 0x80),
    becn = ProtoField.bool("rocelab.becn", "BECN", 8, nil, 0x40),

    side = ProtoField.string("rocelab.side", "Seen by"),
    node = ProtoField.string("rocelab.node", "Node"),
    dev = ProtoField.string("rocelab.dev", "Device"),
    dir = ProtoField.string("rocelab.dir", "Direction"),
    net = ProtoField.string("rocelab.net", "Encapsulation kind"),
    op = ProtoField.string("rocelab.op", "Opcode"),
    qpn = ProtoField.uint32("rocelab.qpn", "Local QP", base.HEX_DEC),
    dqpn = ProtoField.uint32("rocelab.dqpn", "Destination QP", base.HEX_DEC),
    psn = ProtoField.uint32("rocelab.psn", "PSN", base.DEC),
    encapsulation = ProtoField.uint64("rocelab.encapsulation", "Encapsulation (ns)", base.DEC,
        nil, nil, table.concat(ENCAPSULATION, " + ")),
    decapsulation = ProtoField.uint64("rocelab.decapsulation", "Decapsulation (ns)", base.DEC,
        nil, nil, table.concat(DECAPSULATION, " + ")),
    gap = ProtoField.uint64("rocelab.gap", "Between its two events (ns)", base.DEC),
    switched = ProtoField.bool("rocelab.switched", "Task was switched out meanwhile"),
    loopback = ProtoField.bool("rocelab.loopback", "Loopback"),
    link = ProtoField.string("rocelab.link", "Link header"),
    drop = ProtoField.string("rocelab.drop", "Dropped by the driver"),
    other = ProtoField.string("rocelab.other", "Other"),

    psn_status = ProtoField.string("rocelab.psn.status", "PSN status"),
    response_time = ProtoField.relative_time("rocelab.response_time", "Response time"),
    response_to = ProtoField.framenum("rocelab.response_to", "Response to", base.NONE,
        frametype.REQUEST),
    message = ProtoField.string("rocelab.message", "Message (first..last frame)"),
    message_first = ProtoField.framenum("rocelab.message.first", "First packet of the message",
        base.NONE),
    message_last = ProtoField.framenum("rocelab.message.last", "Last packet of the message",
        base.NONE),
    finding = ProtoField.string("rocelab.finding", "Finding"),
    finding_severity = ProtoField.string("rocelab.finding.severity", "Severity"),
    finding_ambiguous = ProtoField.bool("rocelab.finding.ambiguous", "Ambiguous"),
    finding_detail = ProtoField.string("rocelab.finding.detail", "Detail"),
    verdict = ProtoField.uint32("rocelab.verdict", "Verdict, line", base.DEC, nil, nil,
        "1: the failure, or what costs most"),
    verdict_kind = ProtoField.string("rocelab.verdict.kind", "Kind"),
    verdict_cause = ProtoField.string("rocelab.verdict.cause", "Cause"),
    verdict_certainty = ProtoField.string("rocelab.verdict.certainty", "Certainty"),
    verdict_detail = ProtoField.string("rocelab.verdict.detail", "Detail"),
}
for _, stage in ipairs(STAGES) do
    local name, meaning = stage[1], stage[2]
    field["stage_" .. name] = ProtoField.uint64("rocelab.stage." .. name, name .. " (ns)",
        base.DEC, nil, nil, meaning)
end
rocelab.fields = field

local bad_icrc = ProtoExpert.new("rocelab.icrc.bad", "Bad ICRC",
    expert.group.CHECKSUM, expert.severity.ERROR)
local bad_comment = ProtoExpert.new("rocelab.comment.bad", "Comment of rocelab not understood",
    expert.group.UNDECODED, expert.severity.NOTE)
local dropped = ProtoExpert.new("rocelab.dropped", "Dropped by the driver",
    expert.group.SEQUENCE, expert.severity.WARN)
local expert_of = {
    error = ProtoExpert.new("rocelab.finding.error", "Finding",
        expert.group.SEQUENCE, expert.severity.ERROR),
    warning = ProtoExpert.new("rocelab.finding.warning", "Finding",
        expert.group.SEQUENCE, expert.severity.WARN),
    note = ProtoExpert.new("rocelab.finding.note", "Finding",
        expert.group.SEQUENCE, expert.severity.NOTE),
}
local verdict_expert = {
    failure = ProtoExpert.new("rocelab.verdict.failure", "Verdict: a connection failed",
        expert.group.SEQUENCE, expert.severity.ERROR),
    fault = ProtoExpert.new("rocelab.verdict.fault", "Verdict: this costs time",
        expert.group.SEQUENCE, expert.severity.WARN),
    limit = ProtoExpert.new("rocelab.verdict.limit", "Verdict: this limits the connection",
        expert.group.SEQUENCE, expert.severity.NOTE),
    capture = ProtoExpert.new("rocelab.verdict.capture", "Verdict: on the capture itself",
        expert.group.SEQUENCE, expert.severity.NOTE),
}
rocelab.experts = {
    bad_icrc, bad_comment, dropped, expert_of.error, expert_of.warning, expert_of.note,
    verdict_expert.failure, verdict_expert.fault, verdict_expert.limit, verdict_expert.capture,
}

rocelab.prefs.check_icrc = Pref.bool("Verify the ICRC", true,
    "Compute the invariant CRC of RoCE packets where a view, column, filter or colour shows it.")
rocelab.prefs.check_icrc_always = Pref.bool("Verify the ICRC of every packet", false,
    "Also where only the expert statistics would show it; slow with large packets.")
local check_icrc, check_always = true, false

-- what other dissectors found
local find_bth = Field.new("infiniband.bth")
local find_grh = Field.new("infiniband.grh")
local find_lrh = Field.new("infiniband.lrh")
local find_ipv4 = Field.new("ip")
local find_ipv6 = Field.new("ipv6")
local find_comment = Field.new("frame.comment")

-- CRC-32 -------------------------------------------------------------------------------------

-- Exclusive or of many 32-bit numbers: Lua 5.2 has a library for it, later versions an operator
-- that 5.2 cannot compile.
local xor
if bit32 then
    xor = bit32.bxor
else
    xor = load("local a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t = ... "
        .. "if not c then return a ~ b end "
        .. "return a~b~c~d~e~f~g~h~i~j~k~l~m~n~o~p~q~r~s~t")
end

-- SLICE[k][b]: what byte b leaves in the register when k - 1 bytes follow it
local SLICE = {}
do
    local first = {}
    for value = 0, 255 do
        local crc = value
        for _ = 1, 8 do
            local odd = crc % 2
            crc = math.floor(crc / 2)
            if odd == 1 then
                crc = xor(crc, 0xEDB88320)
            end
        end
        first[value] = crc
    end
    SLICE[1] = first
    for k = 2, 16 do
        local made, before = {}, SLICE[k - 1]
        for value = 0, 255 do
            local crc = before[value]
            made[value] = xor(math.floor(crc / 256), first[crc % 256])
        end
        SLICE[k] = made
    end
end
local S1, S2, S3, S4 = SLICE[1], SLICE[2], SLICE[3], SLICE[4]
local S5, S6, S7, S8 = SLICE[5], SLICE[6], SLICE[7], SLICE[8]
local S9, S10, S11, S12 = SLICE[9], SLICE[10], SLICE[11], SLICE[12]
local S13, S14, S15, S16 = SLICE[13], SLICE[14], SLICE[15], SLICE[16]

local string_byte, string_find = string.byte, string.find

-- The register after all bytes of `data`, sixteen at a time. The tables are linear, so that the
-- register's bytes and the data's can be looked up separately and joined by one call.
local function crc32(crc, data)
    local length = #data
    local at = 1
    while at + 15 <= length do
        local b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16 =
            string_byte(data, at, at + 15)
        local c1 = crc % 256
        crc = (crc - c1) / 256
        local c2 = crc % 256
        crc = (crc - c2) / 256
        local c3 = crc % 256
        crc = xor(S16[c1], S16[b1], S15[c2], S15[b2], S14[c3], S14[b3], S13[(crc - c3) / 256],
            S13[b4], S12[b5], S11[b6], S10[b7], S9[b8], S8[b9], S7[b10], S6[b11], S5[b12],
            S4[b13], S3[b14], S2[b15], S1[b16])
        at = at + 16
    end
    for index = at, length do
        local low = crc % 256
        crc = xor((crc - low) / 256, xor(S1[low], S1[string_byte(data, index)]))
    end
    return crc
end

-- ICRC ---------------------------------------------------------------------------------------

local LRH, BTH, GRH, UDP, ICRC = 8, 12, 40, 8, 4

-- Bytes of BTH and extended headers by opcode (IBA volume 1, 9.2): by the lower five bits for RC;
-- the other services add headers before that. Opcodes without a row end with their BTH.
local EXTENDED = {
    [3] = 4, [5] = 4, [6] = 16, [9] = 4, [10] = 16, [11] = 20, [12] = 16, [13] = 4, [15] = 4,
    [16] = 4, [17] = 4, [18] = 12, [19] = 28, [20] = 28, [22] = 4, [23] = 4, [28] = 20, [29] = 16,
}
local RESPONSE = { [13] = true, [14] = true, [15] = true, [16] = true, [17] = true, [18] = true }
local HEADERS = {}
for code = 0, 20 do
    local own = BTH + (EXTENDED[code] or 0)
    HEADERS[code] = own                                         -- RC
    if code < 12 then
        HEADERS[0x20 + code] = own                              -- UC
    end
    HEADERS[0x40 + code] = own + (RESPONSE[code] and 4 or 12)   -- RD: RDETH, DETH
    HEADERS[0xa0 + code] = own + (RESPONSE[code] and 0 or 4)    -- XRC: XRCETH
end
for _, code in ipairs({ 22, 23, 28, 29 }) do
    HEADERS[code] = BTH + EXTENDED[code]
end
HEADERS[0xa0 + 22], HEADERS[0xa0 + 23] = BTH + 8, BTH + 8
HEADERS[0x55], HEADERS[0x5c] = BTH + 12, BTH + 32               -- RD RESYNC, FLUSH
HEADERS[0x64], HEADERS[0x65] = BTH + 8, BTH + 12                -- UD
HEADERS[0x81] = BTH + 16                                        -- CNP

-- The CRC register after the eight bytes of ones that stand for an LRH.
local AFTER_LRH = 0xdebb20e3
local SEED = 0xffffffff

local ONE, TWO, THREE = "\255", "\255\255", "\255\255\255"

-- From here on offsets are indexes into the frame as a Lua string: they count from 1.

local function uint16(frame, at)
    local high, low = string_byte(frame, at, at + 1)
    return high * 256 + low
end

-- The UDP header in the IPv6 header chain at `l3`, before `limit`; nil if there is none.
local function udp_after_ipv6(frame, l3, limit)
    local kind, at = string_byte(frame, l3 + 6), l3 + 40
    for _ = 0, 8 do
        if kind == 17 then
            return at
        end
        if at + 8 > limit then
            return nil
        end
        local following, units = string_byte(frame, at, at + 1)
        local size
        if kind == 0 or kind == 43 or kind == 60 or kind == 135 or kind == 139 or kind == 140 then
            size = (units + 1) * 8
        elseif kind == 44 then
            -- only before a whole packet (RFC 6946): other fragments lack the rest
            local offset = uint16(frame, at + 2)
            if offset >= 8 or offset % 2 == 1 then
                return nil
            end
            size = 8
        elseif kind == 51 then
            size = (units + 2) * 4
        else
            return nil
        end
        kind, at = following, at + size
    end
    return nil
end

-- Native InfiniBand: with a GRH, the LRH counts as ones, as in RoCE.
local function after_lrh(frame, lrh, bth)
    local following = string_byte(frame, lrh + 1) % 4
    local stop = lrh + uint16(frame, lrh + 4) % 2048 * 4
    if following == 2 and lrh + LRH == bth then
        return lrh, "lrh", stop
    end
    if following == 3 and lrh + LRH + GRH == bth then
        return lrh + LRH, "grh", stop
    end
    return nil
end

-- Network header before the BTH: its index, its kind ("ipv4", "ipv6", "grh", "lrh"), and the index
-- after the ICRC by the last length before the BTH. Checked in the frame's own bytes: a reassembled
-- packet has offsets of another buffer. nil if no header can be verified.
local function network(frame, bth)
    for _, ip in ipairs({ find_ipv4() }) do
        local l3 = ip.offset + 1
        if l3 + 20 + UDP <= bth then
            local head = string_byte(frame, l3)
            if head > 0x44 and head < 0x50 and l3 + (head - 0x40) * 4 + UDP == bth
                and string_byte(frame, l3 + 9) == 17 and uint16(frame, l3 + 6) % 0x4000 == 0 then
                return l3, "ipv4", bth - UDP + uint16(frame, bth - 4)
            end
        end
    end
    for _, ip in ipairs({ find_ipv6() }) do
        local l3 = ip.offset + 1
        if l3 + 40 + UDP <= bth and math.floor(string_byte(frame, l3) / 16) == 6
            and udp_after_ipv6(frame, l3, bth) == bth - UDP then
            return l3, "ipv6", bth - UDP + uint16(frame, bth - 4)
        end
    end
    local lrh = find_lrh()
    if lrh then
        return after_lrh(frame, lrh.offset + 1, bth)
    end
    if find_grh() and bth > GRH then
        local l3 = bth - GRH
        if math.floor(string_byte(frame, l3) / 16) == 6 and string_byte(frame, l3 + 6) == 0x1b then
            return l3, "grh", bth + uint16(frame, l3 + 4)
        end
    end
    return nil
end

-- The packet from its network header up to the ICRC, with ones where routers may write (IBA 7.8.1,
-- A16, A17.3.3). `bth` is the index of the BTH in `data`.
local function masked(data, kind, bth)
    local sub = string.sub
    if kind == "ipv4" then
        -- type of service, TTL, header checksum
        return sub(data, 1, 1) .. ONE .. sub(data, 3, 8) .. ONE .. sub(data, 10, 10) .. TWO
            .. sub(data, 13, bth - 3) .. TWO .. sub(data, bth, bth + 3) .. ONE .. sub(data, bth + 5)
    end
    local first = string_byte(data, 1)
    if kind == "lrh" then
        -- virtual lane
        return string.char(240 + first % 16) .. sub(data, 2, bth + 3) .. ONE .. sub(data, bth + 5)
    end
    -- traffic class, flow label, hop limit
    local head = string.char(first - first % 16 + 15) .. THREE .. sub(data, 5, 7) .. ONE
    if kind == "ipv6" then
        return head .. sub(data, 9, bth - 3) .. TWO
            .. sub(data, bth, bth + 3) .. ONE .. sub(data, bth + 5)
    end
    return head .. sub(data, 9, bth + 3) .. ONE .. sub(data, bth + 5)
end

-- The four bytes of a CRC as the wire has them, as one big-endian number.
local function as_on_wire(crc)
    local b1 = crc % 256
    crc = (crc - b1) / 256
    local b2 = crc % 256
    crc = (crc - b2) / 256
    local b3 = crc % 256
    return ((b1 * 256 + b2) * 256 + b3) * 256 + (crc - b3) / 256
end

-- Per frame number, so that sorting and scrolling in the GUI compute each CRC once.
local known = {}

local function add_icrc(root, tvb, number, bth)
    local frame = tvb:raw(0, tvb:len())
    local l3, kind, stop = network(frame, bth)
    if not l3 then
        return
    end
    local opcode, flags = string_byte(frame, bth, bth + 1)
    local pad = (flags - flags % 16) / 16 % 4
    local icrc = stop - ICRC
    if icrc < bth + (HEADERS[opcode] or BTH) + pad or stop > #frame + 1 then
        -- not all captured, or the lengths contradict each other
        root:add(field.status, UNVERIFIED):set_generated()
        return
    end
    local wanted = known[number]
    if not wanted then
        local covered = masked(string.sub(frame, l3, icrc - 1), kind, bth - l3 + 1)
        wanted = as_on_wire(0xffffffff - crc32(kind == "lrh" and SEED or AFTER_LRH, covered))
        known[number] = wanted
    end
    local range = tvb(icrc - 1, ICRC)
    local found = range:uint()
    local status = found == wanted and GOOD or BAD
    local item = root:add(field.status, range, status)
    item:set_generated()
    root:add(field.expected, range, wanted):set_generated()
    if status == BAD then
        item:add_proto_expert_info(bad_icrc,
            string.format("Bad ICRC 0x%08x, expected 0x%08x", found, wanted))
    end
end

-- Comments -----------------------------------------------------------------------------------

-- A value for display: escapes undone, control characters and broken UTF-8 made visible.
local function readable(value)
    if not value:find("[%%%c\128-\255]") then
        return value
    end
    local text = value:gsub("%%(%x%x)", function(digits)
        return string.char(tonumber(digits, 16))
    end)
    local rest = text:gsub("[\194-\223][\128-\191]", "")
        :gsub("[\224-\239][\128-\191][\128-\191]", "")
        :gsub("[\240-\244][\128-\191][\128-\191][\128-\191]", "")
    local hidden = rest:find("[\128-\255]") and "[%c\128-\255]" or "%c"
    return (text:gsub(hidden, function(char)
        return string.format("\\x%02x", string_byte(char))
    end))
end

local function broken_escape(value)
    return value:find("%", 1, true) and value:gsub("%%%x%x", ""):find("%", 1, true)
end

-- Exact in every Lua: no cost reaches 10^15 ns, eleven days.
local function number_of(value, limit)
    if not value:find("^%d+$") or #value > 15 then
        return nil
    end
    local number = tonumber(value)
    return (not limit or number <= limit) and number or nil
end

-- Adding an item costs more than everything else here: leave out what nothing shows or filters on.

local function add_text(name)
    local own = field[name]
    return function(item, value)
        local text = readable(value)
        if item:referenced(own) then
            item:add(own, text):set_generated()
        end
        return text
    end
end

local function add_number(name, limit)
    local own = field[name]
    return function(item, value)
        local number = number_of(value, limit)
        if number and item:referenced(own) then
            item:add(own, number):set_generated()
        end
        return number
    end
end

local function add_ns(name)
    local own = field[name]
    return function(item, value)
        local number = number_of(value)
        if number and item:referenced(own) then
            item:add(own, UInt64.new(number)):set_generated()
        end
        return number
    end
end

local function add_flag(name)
    return function(item, value)
        if value ~= "1" then
            return false
        end
        item:add(field[name], true):set_generated()
        return true
    end
end

local function add_drop(item, value)
    local reason = readable(value)
    local made = item:add(field.drop, reason)
    made:set_generated()
    made:add_proto_expert_info(dropped, "Dropped by the driver: " .. reason)
    return true
end

local FRAMES = 0xffffffff

local LONGEST_HEAD = 100

-- The words before the first ": ", and the rest; nil if those words are too long.
local function head_and_detail(value)
    local head, detail = readable(value):match("^([^:]*): (.*)$")
    -- the patterns that divide it try all ways, and the text may be anybody's
    if not head or #head > LONGEST_HEAD then
        return nil
    end
    return head, detail
end

-- "severity rule: detail" or "severity rule ambiguous: detail", as `rocelab analyze` prints it
local function add_finding(item, value)
    local head, detail = head_and_detail(value)
    if not head then
        return false
    end
    local severity, rule, doubt = head:match("^(%a+) ([%w-]+)( ?%a*)$")
    local level = severity and expert_of[severity]
    if not level or (doubt ~= "" and doubt ~= " ambiguous") then
        return false
    end
    local made = item:add(field.finding, rule)
    made:set_generated()
    made:add(field.finding_severity, severity):set_generated()
    made:add(field.finding_ambiguous, doubt ~= ""):set_generated()
    made:add(field.finding_detail, detail):set_generated()
    made:add_proto_expert_info(level, rule .. doubt .. ": " .. detail)
    return true
end

-- "line kind cause certainty: detail"
local function add_verdict(item, value)
    local head, detail = head_and_detail(value)
    if not head then
        return false
    end
    local line, kind, cause, certainty = head:match("^(%d+) (%a+) ([%w_]+) (%a+)$")
    local number = line and number_of(line, 0xffffffff)
    local level = number and verdict_expert[kind]
    if not level then
        return false
    end
    local made = item:add(field.verdict, number)
    made:set_generated()
    made:add(field.verdict_kind, kind):set_generated()
    made:add(field.verdict_cause, cause):set_generated()
    made:add(field.verdict_certainty, certainty):set_generated()
    made:add(field.verdict_detail, detail):set_generated()
    made:add_proto_expert_info(level, cause .. " (" .. certainty .. "): " .. detail)
    return true
end

local function add_message(item, value)
    local first, last = value:match("^(%d+)%.%.(%d+)$")
    first, last = first and number_of(first, FRAMES), last and number_of(last, FRAMES)
    if not first or not last then
        return false
    end
    local made = item:add(field.message, value)
    made:set_generated()
    made:add(field.message_first, first):set_generated()
    made:add(field.message_last, last):set_generated()
    return true
end

local function add_response_time(item, value)
    local number = number_of(value)
    if number then
        local nanos = number % 1000000000
        local time = NSTime.new((number - nanos) / 1000000000, nanos)
        item:add(field.response_time, time):set_generated()
    end
    return number
end

-- Each returns false or nil if the value cannot be used.
local READERS = {
    node = add_text("node"),
    dev = add_text("dev"),
    dir = add_text("dir"),
    net = add_text("net"),
    op = add_text("op"),
    qpn = add_number("qpn", 0xffffff),
    dqpn = add_number("dqpn", 0xffffff),
    psn = add_number("psn", 0xffffff),
    gap_ns = add_ns("gap"),
    switched = add_flag("switched"),
    loopback = add_flag("loopback"),
    link = add_text("link"),
    drop = add_drop,
    psn_status = add_text("psn_status"),
    response_to = add_number("response_to", FRAMES),
    response_ns = add_response_time,
    message = add_message,
    finding = add_finding,
    verdict = add_verdict,
}
for _, stage in ipairs(STAGES) do
    READERS[stage[1] .. "_ns"] = add_ns("stage_" .. stage[1])
end

local function add_sum(item, costs, name, stages)
    local sum = 0
    for _, stage in ipairs(stages) do
        local cost = costs[stage .. "_ns"]
        if not cost then
            return
        end
        sum = sum + cost
    end
    item:add(field[name], UInt64.new(sum)):set_generated()
end

local function title(read)
    if read.node or read.dev then
        local how = read.dir == "rx" and "Received by " or "Sent by "
        return how .. (read.node or "?") .. " " .. (read.dev or "?")
    end
    return "Found by the analyzer"
end

-- One comment in one pass.
local function add_comment(root, comment)
    local version, rest = comment:match("^rocelab/(%d+)%f[%s\0](.*)$")
    if not version then
        return
    end
    local titled = root:referenced(field.side)
    local item = titled and root:add(field.side, "") or root
    item:set_generated()
    if version ~= "1" then
        item:add_proto_expert_info(bad_comment, "Version " .. version .. " is not known")
        return
    end
    local read, wrong = {}, nil
    for word in rest:gmatch("%S+") do
        local key, value = word:match("^([%w_.]+)=(.*)$")
        local reader = key and READERS[key]
        if reader then
            read[key] = reader(item, value)
            wrong = wrong or ((not read[key] or broken_escape(value)) and word) or nil
        else
            item:add(field.other, readable(word)):set_generated()
            wrong = wrong or (not key and word) or nil
        end
    end
    if read.dir == "tx" then
        add_sum(item, read, "encapsulation", ENCAPSULATION)
    elseif read.dir == "rx" then
        add_sum(item, read, "decapsulation", DECAPSULATION)
    end
    if titled then
        item:set_text(title(read))
    end
    if wrong then
        item:add_proto_expert_info(bad_comment, "Not understood: " .. readable(wrong))
    end
end

-- The dissector ------------------------------------------------------------------------------

local itself

local function add_roce(root, tvb, pinfo, bth)
    if bth.len < BTH then
        return
    end
    -- its own bytes: a reassembled packet's are not those of the frame
    local congestion = bth.range(4, 1)
    root:add(field.fecn, congestion)
    root:add(field.becn, congestion)
    if check_icrc and tvb:len() >= bth.offset + BTH and (check_always
        or root:referenced(field.status) or root:referenced(field.expected)) then
        add_icrc(root, tvb, pinfo.number, bth.offset + 1)
    end
end

-- What the expert statistics show even if nothing asks for our fields. Each packet's comment is
-- searched for words with a rare first letter, which is faster than searching for the space before.
local function may_have_finding(text)
    return string_find(text, "finding=", 1, true) or string_find(text, "drop=", 1, true)
        or string_find(text, "verdict=", 1, true)
end

-- Comments one by one, as Wireshark returns them, without building a table.
local function add_comments(root, tree, wanted, comment, ...)
    if not comment then
        return root
    end
    local text = comment.value
    if type(text) == "string" and (wanted or may_have_finding(text))
        and string_find(text, "^rocelab/") then
        root = root or tree:add(rocelab)
        add_comment(root, text)
    end
    return add_comments(root, tree, wanted, ...)
end

function rocelab.dissector(tvb, pinfo, tree)
    itself = itself or Dissector.get("rocelab")
    local wanted = tree:referenced(itself)
    local root = add_comments(nil, tree, wanted, find_comment())
    -- most packets end here: nothing is computed unless something shows or filters on our fields
    if wanted or (check_icrc and check_always) then
        local bth = find_bth()
        if bth then
            root = root or tree:add(rocelab)
            add_roce(root, tvb, pinfo, bth)
        end
    end
    if root then
        root:set_generated()
    end
end

function rocelab.init()
    known = {}
end

function rocelab.prefs_changed()
    check_icrc, check_always = rocelab.prefs.check_icrc, rocelab.prefs.check_icrc_always
end

register_postdissector(rocelab)
