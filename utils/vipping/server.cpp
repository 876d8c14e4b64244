// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipping/server.hpp"

// vipping as server: one thread lets clients in, the other answers them all through one completion queue. A
// client that leaves is noticed by its flushed receives.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "utils/common/error.hpp"
#include "utils/common/stop.hpp"
#include "utils/doctor/answering.hpp"
#include "utils/messages/message_vi.hpp"

namespace viaduct::vipping {

namespace {

using namespace messages;
using tools::ToolError;

constexpr VIP_ULONG kSliceMs = 100;  // waits look for Ctrl-C so often
constexpr size_t kMostClients = 64;

struct Client {
    std::unique_ptr<MessageVi> message_vi;
    std::string name;
    uint64_t answered = 0;
    uint32_t flushed = 0;
};

class Server {
public:
    Server(const Options& options, const std::string& device, const std::function<void(const std::string&)>& on_line)
        : options_(options), on_line_(on_line), nic_(device) {
        tools::check(VipCreateCQ(nic_.handle(), kMostClients * kReceives, &cq_), "VipCreateCQ");
    }

    ~Server() {
        clients_.clear();
        VipDestroyCQ(cq_);
    }

    void run() {
        VipErrorCallback(nic_.handle(), nullptr, nullptr);  // a lost client is no error of the server
        std::thread acceptor([this] { accept_clients(); });
        on_line_(fmt::format("answering on {} {}, discriminator {}", nic_.name(), tools::text_of(nic_.local("").head),
                             options_.discriminator));
        std::string failure;
        try {
            while (!over()) answer_next();
        } catch (const ToolError& error) {
            failure = error.what();
            failed_ = true;
        }
        acceptor.join();
        if (!failure_.empty()) failure = failure_;
        if (!failure.empty()) throw ToolError(failure);
    }

private:
    bool over() const { return tools::stopped() || failed_; }

    // Runs on the acceptor's thread.
    void accept_clients() try {
        while (!over()) {
            tools::Address local = nic_.local(options_.discriminator), remote{};
            VIP_VI_ATTRIBUTES theirs{};
            VIP_CONN_HANDLE request = nullptr;
            const VIP_RETURN result =
                VipConnectWait(nic_.handle(), &local.head, kSliceMs, &remote.head, &theirs, &request);
            if (result == VIP_TIMEOUT) continue;
            tools::check(result, "VipConnectWait");
            accept(request, theirs, tools::text_of(remote.head));
        }
    } catch (const ToolError& error) {
        failure_ = error.what();
        failed_ = true;
    }

    void accept(VIP_CONN_HANDLE request, const VIP_VI_ATTRIBUTES& theirs, const std::string& name) {
        const std::lock_guard lock(mutex_);
        if (clients_.size() >= kMostClients || theirs.MaxTransferSize > kMostBytes) {
            VipConnectReject(request);
            return;
        }
        Client client;
        const auto bytes = static_cast<uint32_t>(theirs.MaxTransferSize);  // both sides' must be equal
        client.message_vi = std::make_unique<MessageVi>(nic_, theirs.ReliabilityLevel, bytes, cq_);
        client.name = name;
        if (const VIP_RETURN result = VipConnectAccept(request, client.message_vi->vi()); result != VIP_SUCCESS) {
            on_line_(fmt::format("{} was not accepted: {}", name, tools::text_of(result)));
            VipConnectReject(request);
            return;
        }
        on_line_(fmt::format("{} has come", name));
        const VIP_VI_HANDLE vi = client.message_vi->vi();
        clients_.emplace(vi, std::move(client));
    }

    void answer_next() {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN is_receive = VIP_FALSE;
        const VIP_RETURN result = VipCQWait(cq_, kSliceMs, &vi, &is_receive);
        if (result == VIP_TIMEOUT || result == VIP_NOT_DONE) return;
        tools::check(result, "VipCQWait");
        const std::lock_guard lock(mutex_);
        const auto found = clients_.find(vi);
        if (found == clients_.end()) return;
        Client& client = found->second;
        VIP_DESCRIPTOR* d = nullptr;
        const VIP_RETURN got = VipRecvDone(vi, &d);
        if (got == VIP_SUCCESS) {
            answer(client, d);
        } else if (got == VIP_DESCRIPTOR_ERROR && ++client.flushed == kReceives) {
            remove_client(found);
        }
    }

    void answer(Client& client, VIP_DESCRIPTOR* d) try {
        const auto bytes = std::min(d->CS.Length, kMostBytes);
        client.message_vi->reap_send(kSliceMs);
        std::memcpy(client.message_vi->outgoing(), MessageVi::data_of(d), bytes);
        client.message_vi->repost(d);
        client.message_vi->send(bytes);
        ++client.answered;
    } catch (const ToolError&) {
        // It has left: its receives come back flushed and end it.
        ++client.flushed;
    }

    void remove_client(std::map<VIP_VI_HANDLE, Client>::iterator client) {
        on_line_(fmt::format("{} has left after {} messages", client->second.name, client->second.answered));
        clients_.erase(client);
        if (options_.once) tools::stop();
    }

    const Options& options_;
    const std::function<void(const std::string&)>& on_line_;
    tools::Nic nic_;
    VIP_CQ_HANDLE cq_ = nullptr;
    std::mutex mutex_;  // guards the clients: one thread adds them, the other takes them away
    std::map<VIP_VI_HANDLE, Client> clients_;
    std::atomic<bool> failed_{false};
    std::string failure_;  // of the acceptor's thread; read when it has ended
};

void serve_one(const Options& options, const std::string& device,
               const std::function<void(const std::string&)>& on_line) {
    try {
        Server(options, device, on_line).run();
    } catch (const ToolError& error) {
        on_line(fmt::format("not answering on {}: {}", device, error.what()));
    }
}

// Answers on the NIC named, or on all that clients may come to: the first one has to work. With the doctor none has to:
// it tells what does not.
void serve_messages(const Options& options, const std::function<void(const std::string&)>& tell) {
    const std::vector<std::string> devices =
        options.device.empty() ? tools::served_devices() : std::vector<std::string>{options.device};
    std::vector<std::thread> others;
    for (size_t i = options.doctor ? 0 : 1; i < devices.size(); ++i)
        others.emplace_back([&options, &tell, &device = devices[i]] { serve_one(options, device, tell); });
    std::optional<ToolError> failure;
    try {
        if (!options.doctor) Server(options, devices.front(), tell).run();
    } catch (const ToolError& error) {
        failure = error;
        tools::stop();
    }
    for (std::thread& other : others) other.join();
    if (failure) throw ToolError(*failure);
}

}  // namespace

void serve(const messages::Options& options, const std::function<void(const std::string&)>& on_line) {
    std::mutex mutex;
    doctor::Notes notes;
    const auto tell = [&](const std::string& line) {
        const std::lock_guard lock(mutex);
        on_line(line);
        if (line.starts_with("not answering")) notes.add(line);
    };
    if (!options.doctor) return serve_messages(options, tell);
    const Fd listener = doctor::listen_for_examinations();
    std::thread messages([&] { serve_messages(options, tell); });
    tell(fmt::format("answering vipping --doctor at TCP port {}", doctor::kDoctorPort));
    doctor::answer_examinations(listener, notes, tell);
    messages.join();
}

}  // namespace viaduct::vipping
