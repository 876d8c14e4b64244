-- SPDX-License-Identifier: BSD-2-Clause
-- Wireshark/tshark dissector of VI-over-packets (docs/wire-format.md), over Ethernet (type 0x88B5) and UDP (port 4792).
-- Use: tshark -X lua_script:viaduct.lua -r capture.pcap, or copy it into the personal plugin folder.

local viaduct = Proto("viaduct", "Viaduct VI over packets")

local kinds = {
    [1] = "request", [2] = "peer-request", [3] = "accept", [4] = "confirm", [5] = "reject", [6] = "no-match",
    [7] = "pending", [8] = "withdraw", [16] = "disconnect", [17] = "disconnected", [18] = "reset", [19] = "keep-alive",
    [20] = "acknowledge", [32] = "send", [33] = "write", [34] = "read-request", [35] = "read-data",
    [36] = "atomic-request", [37] = "atomic-data",
}
local levels = { [1] = "Unreliable", [2] = "Reliable Delivery", [4] = "Reliable Reception" }
local reasons = {
    [0] = "disconnected", [1] = "no receive", [2] = "bad receive", [3] = "not permitted", [4] = "protocol",
    [5] = "gave up", [6] = "broken",
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

local HEADER, VERSION, VERSION_ANSWER = 40, 2, 72

local function add_address(tree, bytes, host, discriminator)
    tree:add(host, bytes(0, 6))
    local n = bytes(6, 2):uint()
    if n > 0 and n <= 64 then tree:add(discriminator, bytes(8, n)) end
end

local function connect(tree, b)
    tree:add(f.nonce, b(0, 8))
    tree:add(f.first_sequence, b(8, 4))
    tree:add(f.max_frame, b(12, 2))
    tree:add(f.arrived, b(14, 2))
    tree:add(f.level, b(16, 2))
    tree:add(f.rdma, b(18, 1))
    tree:add(f.attended, b(19, 1))
    tree:add(f.window, b(20, 4))
    tree:add(f.max_transfer, b(24, 8))
    tree:add(f.qos, b(32, 8))
    add_address(tree, b(40, 72), f.local_host, f.local_discriminator)
    add_address(tree, b(112, 72), f.remote_host, f.remote_discriminator)
    tree:add(f.link_pass, b(184, 8))
    return 192
end

local function answer(tree, b)
    tree:add(f.nonce, b(0, 8))
    tree:add(f.status, b(8, 2))
    tree:add(f.arrived, b(10, 2))
    return 16
end

local function selective(tree, b)
    tree:add(f.selective, b(0, 32))
    return 32
end

local function message(tree, b)
    tree:add(f.message, b(0, 4))
    tree:add(f.offset, b(4, 4))
    tree:add(f.total, b(8, 4))
    tree:add(f.immediate, b(12, 4))
    return 16
end

-- How the fields of each kind are shown, and how many bytes they are.
local fields = {
    [1] = connect, [2] = connect, [3] = connect,
    [4] = answer, [5] = answer, [6] = answer, [7] = answer, [8] = answer,
    [16] = function(tree, b)
        tree:add(f.reason, b(0, 2))
        tree:add(f.message, b(4, 4))
        return 8
    end,
    [17] = function() return 0 end,
    [18] = function() return 0 end,
    [19] = selective, [20] = selective,
    [32] = message,
    [33] = function(tree, b)
        message(tree, b)
        tree:add(f.address, b(16, 8))
        tree:add(f.handle, b(24, 4))
        return 32
    end,
    [34] = function(tree, b)
        tree:add(f.address, b(0, 8))
        tree:add(f.handle, b(8, 4))
        tree:add(f.total, b(12, 4))
        tree:add(f.message, b(16, 4))
        return 24
    end,
    [35] = function(tree, b)
        tree:add(f.message, b(0, 4))
        tree:add(f.offset, b(4, 4))
        tree:add(f.total, b(8, 4))
        return 12
    end,
    [36] = function(tree, b)
        tree:add(f.address, b(0, 8))
        tree:add(f.handle, b(8, 4))
        tree:add(f.message, b(12, 4))
        tree:add(f.operand, b(16, 8))
        tree:add(f.compare, b(24, 8))
        tree:add(f.atomic, b(32, 1))
        tree:add(f.width, b(33, 1))
        return 40
    end,
    [37] = function(tree, b)
        tree:add(f.message, b(0, 4))
        tree:add(f.value, b(8, 8))
        return 16
    end,
}

-- The answer to a request of another version, which is no frame.
local function version_answer(buffer, packet, root)
    packet.cols.protocol = "VIADUCT"
    packet.cols.info = string.format("speaks version %u, not %u", buffer(2, 1):uint(), buffer(3, 1):uint())
    local tree = root:add(viaduct, buffer(0, VERSION_ANSWER))
    tree:add(f.version, buffer(2, 1))
    tree:add(f.theirs, buffer(3, 1))
    tree:add(f.check, buffer(4, 4))
    tree:add(f.quote, buffer(8, 64))
    return VERSION_ANSWER
end

function viaduct.dissector(buffer, packet, root)
    if buffer:len() >= VERSION_ANSWER and buffer(0, 2):uint() == 1 then return version_answer(buffer, packet, root) end
    if buffer:len() < HEADER or buffer(0, 1):uint() ~= VERSION then return 0 end
    local length = buffer(32, 2):uint()
    if HEADER + length > buffer:len() then return 0 end
    packet.cols.protocol = "VIADUCT"
    local tree = root:add(viaduct, buffer(0, HEADER + length))
    local kind = buffer(1, 1):uint()
    tree:add(f.version, buffer(0, 1))
    tree:add(f.kind, buffer(1, 1))
    local flags = tree:add(f.flags, buffer(2, 2))
    for _, flag in ipairs({ f.immediate_flag, f.last_flag, f.ack_flag, f.again_flag, f.tagged_flag }) do
        flags:add(flag, buffer(2, 2))
    end
    tree:add(f.destination, buffer(4, 4))
    tree:add(f.source, buffer(8, 4))
    tree:add(f.sequence, buffer(12, 4))
    tree:add(f.acknowledge, buffer(16, 4))
    tree:add(f.credit, buffer(20, 4))
    tree:add(f.pass, buffer(24, 8))
    tree:add(f.length, buffer(32, 2))
    tree:add(f.check, buffer(36, 4))
    packet.cols.info = string.format("%s %08x > %08x seq %u ack %u", kinds[kind] or "unknown",
        buffer(8, 4):uint(), buffer(4, 4):uint(), buffer(12, 4):uint(), buffer(16, 4):uint())
    if fields[kind] == nil or length == 0 then return HEADER + length end
    local used = fields[kind](tree, buffer(HEADER, length):tvb())
    if kind >= 32 and length > used then tree:add(f.payload, buffer(HEADER + used, length - used)) end
    return HEADER + length
end

DissectorTable.get("ethertype"):add(0x88B5, viaduct)
DissectorTable.get("udp.port"):add(4792, viaduct)
