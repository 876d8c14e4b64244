// SPDX-License-Identifier: BSD-2-Clause
// One call of a provider's discovery; see nic_answer.hpp.
#include "kagent/nic_answer.hpp"

#include <cstring>
#include <exception>
#include <new>

namespace viaduct::kagent {

namespace {

template <size_t N>
std::string bounded(const char (&field)[N]) {
    return std::string(field, ::strnlen(field, N - 1));
}

class Sink final : public NicSink {
public:
    Sink(const char* provider, NicAnswer* answer) : provider_(provider), answer_(answer) {}
    void offer(const NicInfo& nic) override { answer_->offered.push_back({nic, {}}); }
    void also_called(const char* name) override {
        if (!answer_->offered.empty()) answer_->offered.back().other_names.emplace_back(name);
    }
    void reject(const Rejection& r) override {
        answer_->rejected.push_back({provider_, bounded(r.name), bounded(r.reason), bounded(r.cure)});
    }

private:
    const char* provider_;
    NicAnswer* answer_;
};

NicAnswer ask(const Provider& provider, const Settings& settings) {
    NicAnswer answer;
    Sink sink(provider.name, &answer);
    Status s = Status::ok;
    std::string fault = "its discovery failed";
    try {
        s = provider.control.discover(settings, Hints{}, sink);
    } catch (const std::bad_alloc&) {
        s = Status::out_of_resources;
        fault = "its discovery had no memory";
    } catch (const std::exception& e) {
        s = Status::broken;
        fault = std::string("its discovery threw: ") + e.what();
    } catch (...) {
        s = Status::broken;
        fault = "its discovery threw an object that is no std::exception";
    }
    if (s == Status::ok) return answer;
    answer.complete = false;
    answer.may_succeed_later = s == Status::out_of_resources;
    // The provider's reasons are closer to the cause.
    if ((answer.may_succeed_later || s == Status::denied) && !answer.rejected.empty()) return answer;
    answer.rejected.push_back(
        {provider.name, "", fault + " (status " + std::to_string(static_cast<int>(s)) + ")",
         std::string("look at the section [") + provider.name + "] of the configuration, or reinstall Viaduct"});
    return answer;
}

}  // namespace

NicAnswer ask_for_nics(const Provider& provider, const Settings& settings) {
    try {
        return ask(provider, settings);
    } catch (const std::bad_alloc&) {
        NicAnswer failed;
        failed.complete = false;
        failed.may_succeed_later = true;
        return failed;
    }
}

}  // namespace viaduct::kagent
