// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/daemon/receive_fifo.hpp"

namespace viaduct::acenic {

void ReceiveFifo::deliver(tigon::Firmware& nic, std::span<const std::byte> head,
                          std::span<const std::byte> body) {
    const size_t bytes = head.size() + body.size();
    if (frames_.empty() && nic.has_room(static_cast<uint32_t>(bytes))) {
        nic.deliver(head, body);
        return;
    }
    if (!memory_.take(held_, bytes)) return nic.count_dropped(static_cast<uint32_t>(bytes));
    std::vector<std::byte> frame;
    frame.reserve(bytes);
    frame.insert(frame.end(), head.begin(), head.end());
    frame.insert(frame.end(), body.begin(), body.end());
    frames_.push_back(std::move(frame));
    held_ += bytes;
    ++waited_;
}

bool ReceiveFifo::may_drain(const tigon::Firmware& nic) const {
    return !frames_.empty() && nic.has_room(static_cast<uint32_t>(frames_.front().size()));
}

bool ReceiveFifo::drain(tigon::Firmware& nic) {
    bool any = false;
    for (; may_drain(nic); any = true) {
        const std::span<const std::byte> frame = frames_.front();
        nic.deliver(frame.first(tigon::kEthernetHeader), frame.subspan(tigon::kEthernetHeader));
        held_ -= frame.size();
        memory_.give_back(frame.size());
        frames_.pop_front();
    }
    return any;
}

}  // namespace viaduct::acenic
