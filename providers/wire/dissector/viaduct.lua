-- SPDX-License-Identifier: BSD-2-Clause
-- Wireshark/tshark dissector of VI-over-packets (docs/wire-format.md), over Ethernet (type 0x88B5) and UDP: port 4792,
-- and any other ports by what a frame is. A packet may hold several frames. vipcap decodes by the same rules.
-- It is installed where Wireshark looks; by hand: tshark -X lua_script:viaduct.lua -r capture.pcap

local is_first, viaduct = pcall(Proto, "viaduct", "Viaduct VI over packets")
if not is_first then return end -- it is installed twice: one does

local kinds = {
    [1] = "request", [2] = "peer-request", [3] = "accept", [4] = "confirm", [5] = "reject", [6] = "no-match",
    [7] = "pending", [8] = "withdraw", [9] = "prove", [16] = "disconnect", [17] = "disconnected", [18] = "reset", [19] = "keep-alive",
    [20] = "acknowledge", [32] = "send", [33] = "write", [34] = "read-request", [35] = "read-data",
    [36] = "atomic-request", [37] = "atomic-data",
}
local levels = { [1] = "Unreliable", [2] = "Reliable Delivery", [4] = "Reliable Reception" }
local reasons = {
    [0] = "disconnected", [1] = "no receive", [2] = "bad receive", [3] = "not permitted", [4] = "protocol",
    [5] = "gave up", [6] = "broken",
}
local findings = {
    [1] = "no receive", [2] = "receive too small", [3] = "unknown handle", [4] = "outside of its region",
    [5] = "another protection tag", [6] = "memory not open to the peer", [7] = "VI not enabled", [8] = "Control",
    [9] = "SegCount", [10] = "no address segment", [11] = "no RDMA read", [12] = "read with immediate data",
    [13] = "descriptor past its region", [14] = "CS.Length", [15] = "more than MaxTransferSize", [16] = "no atomics",
    [17] = "segments of an atomic", [18] = "width of an atomic", [19] = "alignment of an atomic",
    [20] = "changed or unmapped", [21] = "queue full", [22] = "misaligned descriptor",
    [23] = "descriptor not registered", [24] = "completion queue full", [25] = "NIC failed",
}
local finding_operations = {
    [0] = "none", [1] = "send", [2] = "receive", [3] = "RDMA write", [4] = "RDMA read", [5] = "atomic",
}
local atomics = { [1] = "fetch-add", [2] = "compare-swap" }

local f = {
    version = ProtoField.uint8("viaduct.version", "Version"),
    kind = ProtoField.uint8("viaduct.kind", "Kind", base.DEC, kinds),
    flags = ProtoField.uint16("viaduct.flags", "Flags", base.HEX),
    immediate_flag = ProtoField.bool("viaduct.flags.immediate", "Immediate data", 16, nil, 0x1),
    last_flag = ProtoField.bool("viaduct.flags.last", "Last fragment", 16, nil, 0x2),
    ack_flag = ProtoField.bool("viaduct.flags.ack_now", "Acknowledgement wanted", 16, nil, 0x4),
    again_flag = ProtoField.bool("viaduct.flags.again", "Retransmission", 16, nil, 0x8),
    destination = ProtoField.uint32("viaduct.destination", "Destination link", base.HEX),
    source = ProtoField.uint32("viaduct.source", "Source link", base.HEX),
    sequence = ProtoField.uint32("viaduct.sequence", "Sequence"),
    acknowledge = ProtoField.uint32("viaduct.acknowledge", "Acknowledge"),
    credit = ProtoField.uint32("viaduct.credit", "Receives posted"),
    tagged_flag = ProtoField.bool("viaduct.flags.tagged", "The pass is a tag", 16, nil, 0x10),
    pass = ProtoField.uint64("viaduct.pass", "Pass", base.HEX),
    link_pass = ProtoField.uint64("viaduct.link_pass", "Pass for its frames", base.HEX),
    cookie = ProtoField.uint64("viaduct.cookie", "Cookie", base.HEX),
    theirs = ProtoField.uint8("viaduct.version_seen", "Version that came"),
    quote = ProtoField.bytes("viaduct.quote", "Beginning of what came"),
    length = ProtoField.uint16("viaduct.length", "Length"),
    check = ProtoField.uint32("viaduct.check", "CRC32C", base.HEX),
    nonce = ProtoField.uint64("viaduct.nonce", "Nonce", base.HEX),
    first_sequence = ProtoField.uint32("viaduct.first_sequence", "First sequence"),
    max_frame = ProtoField.uint16("viaduct.max_frame", "Largest frame"),
    arrived = ProtoField.uint16("viaduct.arrived", "Largest frame that arrived"),
    level = ProtoField.uint16("viaduct.level", "Reliability level", base.DEC, levels),
    rdma = ProtoField.uint8("viaduct.rdma", "RDMA (1 write, 2 read)"),
    attended = ProtoField.uint8("viaduct.attended", "Its death would be told", base.DEC, nil, 0x01),
    window = ProtoField.uint32("viaduct.window", "Window"),
    max_transfer = ProtoField.uint64("viaduct.max_transfer", "Largest transfer"),
    qos = ProtoField.uint64("viaduct.qos", "Quality of service"),
    local_host = ProtoField.bytes("viaduct.local.host", "Local host"),
    local_discriminator = ProtoField.bytes("viaduct.local.discriminator", "Local discriminator"),
    remote_host = ProtoField.bytes("viaduct.remote.host", "Remote host"),
    remote_discriminator = ProtoField.bytes("viaduct.remote.discriminator", "Remote discriminator"),
    status = ProtoField.uint16("viaduct.status", "Status"),
    reason = ProtoField.uint16("viaduct.reason", "Reason", base.DEC, reasons),
    finding = ProtoField.uint16("viaduct.finding", "Finding", base.DEC, findings),
    finding_operation = ProtoField.uint8("viaduct.finding.operation", "In an operation", base.DEC, finding_operations),
    finding_of_target = ProtoField.uint8("viaduct.finding.of_target", "Of the target", base.DEC, nil, 0x01),
    finding_handle = ProtoField.uint32("viaduct.finding.handle", "Handle of the target", base.HEX),
    finding_address = ProtoField.uint64("viaduct.finding.address", "Address of the target", base.HEX),
    finding_length = ProtoField.uint64("viaduct.finding.length", "Length that was asked for"),
    selective = ProtoField.bytes("viaduct.selective", "Selective acknowledgement"),
    message = ProtoField.uint32("viaduct.message", "Message"),
    offset = ProtoField.uint32("viaduct.offset", "Offset"),
    total = ProtoField.uint32("viaduct.total", "Total"),
    immediate = ProtoField.uint32("viaduct.immediate", "Immediate", base.HEX),
    address = ProtoField.uint64("viaduct.address", "Remote address", base.HEX),
    handle = ProtoField.uint32("viaduct.handle", "Memory handle", base.HEX),
    operand = ProtoField.uint64("viaduct.operand", "Operand"),
    compare = ProtoField.uint64("viaduct.compare", "Compare"),
    atomic = ProtoField.uint8("viaduct.atomic", "Operation", base.DEC, atomics),
    width = ProtoField.uint8("viaduct.width", "Width"),
    value = ProtoField.uint64("viaduct.value", "Old value"),
    payload = ProtoField.bytes("viaduct.payload", "Payload"),
}
viaduct.fields = f

local damaged = ProtoExpert.new("viaduct.damaged", "The check does not hold", expert.group.CHECKSUM,
    expert.severity.ERROR)
viaduct.experts = { damaged }

local HEADER, VERSION, VERSION_ANSWER, CHECK_AT, ANSWER_CHECK_AT, DATA = 40, 2, 72, 36, 4, 32

-- CRC32C by a table. Lua has operators for bits since 5.3, and a library of them in 5.2; neither reads the other one.
local operators = load("return function(a, b) return a ~ b end, function(a, n) return a >> n end")
local xor, shift
if operators then xor, shift = operators() else xor, shift = bit32.bxor, bit32.rshift end
local crc_table = {}
for i = 0, 255 do
    local c = i
    for _ = 1, 8 do c = c % 2 == 1 and xor(0x82F63B78, shift(c, 1)) or shift(c, 1) end
    crc_table[i] = c
end

local function crc_of(crc, text)
    for at = 1, #text do crc = xor(crc_table[xor(crc, text:byte(at)) % 256], shift(crc, 8)) end
    return crc
end

-- Of the `bytes` at `at`, whose check lies at `check` of them.
local function check_holds(buffer, at, bytes, check)
    local crc = crc_of(0xFFFFFFFF, buffer:raw(at, check) .. "\0\0\0\0")
    if bytes > check + 4 then crc = crc_of(crc, buffer:raw(at + check + 4, bytes - check - 4)) end
    return xor(crc, 0xFFFFFFFF) == buffer(at + check, 4):uint()
end

local function add_discriminator(tree, field, b)
    local n = b(0, 2):uint()
    if n > 0 and n <= 64 then tree:add(field, b(2, n)) end
end

-- Fields by kind: which, where, how many bytes; and how it is added, where that takes more than its bytes.
local connect = {
    { f.nonce, 0, 8 }, { f.first_sequence, 8, 4 }, { f.max_frame, 12, 2 }, { f.arrived, 14, 2 }, { f.level, 16, 2 },
    { f.rdma, 18, 1 }, { f.attended, 19, 1 }, { f.window, 20, 4 }, { f.max_transfer, 24, 8 }, { f.qos, 32, 8 },
    { f.local_host, 40, 6 }, { f.local_discriminator, 46, 66, add_discriminator }, { f.remote_host, 112, 6 },
    { f.remote_discriminator, 118, 66, add_discriminator }, { f.link_pass, 184, 8 }, { f.cookie, 192, 8 },
}
local answer = { { f.nonce, 0, 8 }, { f.status, 8, 2 }, { f.arrived, 10, 2 } }
local selective = { { f.selective, 0, 32 } }
local message = { { f.message, 0, 4 }, { f.offset, 4, 4 }, { f.total, 8, 4 }, { f.immediate, 12, 4 } }
local fields = {
    [1] = connect, [2] = connect, [3] = connect,
    [4] = answer, [5] = answer, [6] = answer, [7] = answer, [8] = answer,
    [9] = { answer[1], answer[3], { f.cookie, 16, 8 } },
    [16] = {
        { f.reason, 0, 2 }, { f.message, 4, 4 }, { f.finding, 8, 2 }, { f.finding_operation, 10, 1 },
        { f.finding_of_target, 11, 1 }, { f.finding_handle, 12, 4 }, { f.finding_address, 16, 8 },
        { f.finding_length, 24, 8 },
    },
    [17] = {}, [18] = {},
    [19] = selective, [20] = selective,
    [32] = message,
    [33] = { message[1], message[2], message[3], message[4], { f.address, 16, 8 }, { f.handle, 24, 4 } },
    [34] = { { f.address, 0, 8 }, { f.handle, 8, 4 }, { f.total, 12, 4 }, { f.message, 16, 4 } },
    [35] = { { f.message, 0, 4 }, { f.offset, 4, 4 }, { f.total, 8, 4 } },
    [36] = {
        { f.address, 0, 8 }, { f.handle, 8, 4 }, { f.message, 12, 4 }, { f.operand, 16, 8 }, { f.compare, 24, 8 },
        { f.atomic, 32, 1 }, { f.width, 33, 1 },
    },
    [37] = { { f.message, 0, 4 }, { f.value, 8, 8 } },
}
-- What comes before the payload.
local bytes_of_fields = { [32] = 16, [33] = 32, [34] = 24, [35] = 12, [36] = 40, [37] = 16 }
local header = {
    { f.version, 0, 1 }, { f.kind, 1, 1 },
    { f.flags, 2, 2, function(tree, field, b)
        local flags = tree:add(field, b)
        for _, one in ipairs({ f.immediate_flag, f.last_flag, f.ack_flag, f.again_flag, f.tagged_flag }) do
            flags:add(one, b)
        end
    end },
    { f.destination, 4, 4 }, { f.source, 8, 4 }, { f.sequence, 12, 4 }, { f.acknowledge, 16, 4 }, { f.credit, 20, 4 },
    { f.pass, 24, 8 }, { f.length, 32, 2 }, { f.check, 36, 4 },
}
-- The answer to a request of another version, which is no frame.
local version_answer = { { f.version, 2, 1 }, { f.theirs, 3, 1 }, { f.check, 4, 4 }, { f.quote, 8, 64 } }

-- Those of the `left` bytes at `at`; a frame may be shorter than its kind has fields.
local function add_fields(tree, buffer, at, left, places)
    for _, place in ipairs(places) do
        local field, offset, bytes, add = place[1], place[2], place[3], place[4]
        if offset + bytes > left then return end
        local range = buffer(at + offset, bytes)
        if add then add(tree, field, range) else tree:add(field, range) end
    end
end

-- Bytes of the frame at `at`, whether its check holds, and whether it is the answer to another version; 0: there is
-- none. Where not `sure` that nothing else comes there, only such a one counts whose check holds.
local function frame_at(buffer, at, sure)
    local left = buffer:len() - at
    if left < HEADER then return 0 end
    if left >= VERSION_ANSWER and buffer(at, 2):uint() == 1 then
        return check_holds(buffer, at, VERSION_ANSWER, ANSWER_CHECK_AT) and VERSION_ANSWER or 0, true, true
    end
    local bytes = HEADER + buffer(at + 32, 2):uint()
    if buffer(at, 1):uint() ~= VERSION or bytes > left then return 0 end
    if not sure and kinds[buffer(at + 1, 1):uint()] == nil then return 0 end
    local holds = check_holds(buffer, at, bytes, CHECK_AT)
    return (holds or sure) and bytes or 0, holds, false
end

local function show_version_answer(buffer, at, root)
    add_fields(root:add(viaduct, buffer(at, VERSION_ANSWER)), buffer, at, VERSION_ANSWER, version_answer)
    return string.format("speaks version %u, not %u", buffer(at + 2, 1):uint(), buffer(at + 3, 1):uint())
end

local function show_frame(buffer, at, bytes, holds, root)
    local tree, kind = root:add(viaduct, buffer(at, bytes)), buffer(at + 1, 1):uint()
    add_fields(tree, buffer, at, HEADER, header)
    add_fields(tree, buffer, at + HEADER, bytes - HEADER, fields[kind] or {})
    local before = HEADER + (bytes_of_fields[kind] or 0)
    if kind >= DATA and bytes > before then tree:add(f.payload, buffer(at + before, bytes - before)) end
    if not holds then tree:add_proto_expert_info(damaged) end
    return string.format("%s %08x > %08x seq %u ack %u%s", kinds[kind] or "unknown", buffer(at + 8, 4):uint(),
        buffer(at + 4, 4):uint(), buffer(at + 12, 4):uint(), buffer(at + 16, 4):uint(), holds and "" or " DAMAGED")
end

-- All frames of a packet; how many bytes they are.
local function show(buffer, packet, root, sure)
    local at, lines = 0, {}
    while true do
        local bytes, holds, is_answer = frame_at(buffer, at, sure)
        if bytes == 0 then break end
        table.insert(lines, is_answer and show_version_answer(buffer, at, root)
            or show_frame(buffer, at, bytes, holds, root))
        at = at + bytes
    end
    if at == 0 then return 0 end
    packet.cols.protocol = "VIADUCT"
    packet.cols.info = table.concat(lines, "; ")
    return at
end

function viaduct.dissector(buffer, packet, root) return show(buffer, packet, root, true) end

DissectorTable.get("ethertype"):add(0x88B5, viaduct)
DissectorTable.get("udp.port"):add(4792, viaduct)
viaduct:register_heuristic("udp", function(buffer, packet, root) return show(buffer, packet, root, false) > 0 end)
