// SPDX-License-Identifier: BSD-2-Clause
// The record in the Chrome trace-event format, which Perfetto and chrome://tracing open: a track for each thread of
// each process, a slice for each call, arrows from the post of a message to the fetching of its receive.
#include <fmt/format.h>
#include <vipl.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/text/code_names.hpp"
#include "utils/viptrace/findings.hpp"

namespace viaduct::viptrace {

namespace {

constexpr double kInstant = 0.2;   // µs: how long what takes no time is drawn
constexpr double kInside = 0.001;  // an arrow ends so far inside its slice

std::string quoted(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

double us(int64_t ns) { return static_cast<double>(ns) / 1e3; }

class Trace {
public:
    void add(const std::string& event) { out_ += (out_.empty() ? "\n" : ",\n") + event; }
    std::string whole() const {
        return "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"schema\":\"viaduct/viptrace/1\"},\"traceEvents\":[" +
               out_ + "\n]}\n";
    }

private:
    std::string out_;
};

std::string head(const char* phase, size_t process, uint32_t thread, double at) {
    return fmt::format(R"("ph":"{}","pid":{},"tid":{},"ts":{:.3f})", phase, process + 1, thread, at);
}

std::string arguments(const Seen& begin, const Seen& last) {
    std::string out = fmt::format(R"("handle":"{:x}")", last.object);
    switch (last.what) {
        case What::post_send:
            out += fmt::format(R"(,"bytes":{},"control":{})", last.low(), last.high());
            break;
        case What::post_recv:
        case What::register_mem:
        case What::write_now:
            out += fmt::format(R"(,"bytes":{})", last.low());
            break;
        case What::send_done:
        case What::recv_done:
        case What::send_wait:
        case What::recv_wait:
        case What::send_notify:
        case What::recv_notify: {
            char names[256] = "";
            write_status_names(last.high(), names, sizeof names);
            out += fmt::format(R"(,"bytes":{},"status":{})", last.low(), quoted(names));
            break;
        }
        default:
            break;
    }
    if (begin.what == What::async_error) {
        const char* const name = name_of_error(last.low()).name;
        out += fmt::format(R"(,"error":{})", quoted(name != nullptr ? name : "?"));
    }
    const char* const result = name_of_return(last.result).name;
    if (begin.phase != Phase::begin || &begin != &last)
        out += fmt::format(R"(,"result":{})", quoted(result != nullptr ? result : "?"));
    return out;
}

void add_names(Trace* trace, size_t process, const Process& p) {
    trace->add(fmt::format(R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":{}}}}})", process + 1,
                           quoted(fmt::format("{} (process {} on {})", p.name(), p.pid, p.host))));
    trace->add(fmt::format(R"({{"name":"process_sort_index","ph":"M","pid":{},"args":{{"sort_index":{}}}}})",
                           process + 1, process));
}

void add_instants(Trace* trace, size_t process, const Process& p) {
    std::map<uint32_t, int64_t> next;  // by thread: when its next event is
    std::vector<double> room(p.events.size(), kInstant);
    for (size_t i = p.events.size(); i-- > 0;) {
        const Seen& e = p.events[i];
        if (const auto it = next.find(e.thread); it != next.end()) room[i] = std::min(kInstant, us(it->second - e.ns));
        next[e.thread] = e.ns;
    }
    for (size_t i = 0; i < p.events.size(); ++i) {
        const Seen& e = p.events[i];
        if (e.phase != Phase::instant || e.what == What::made) continue;
        trace->add(fmt::format(R"({{"name":{},"cat":"vipl",{},"dur":{:.3f},"args":{{{}}}}})", quoted(name_of(e.what)),
                               head("X", process, e.thread, us(e.ns)), room[i], arguments(e, e)));
    }
}

void add_call(Trace* trace, const std::vector<Process>& all, const Call& c) {
    const Process& p = all[c.process];
    const Seen& begin = p.events[c.begin];
    trace->add(fmt::format(R"({{"name":{},"cat":"vipl",{},"dur":{:.3f},"args":{{{}{}}}}})", quoted(name_of(begin.what)),
                           head("X", c.process, begin.thread, us(begin.ns)), us(c.ns),
                           arguments(begin, p.events[c.end]), c.ended ? "" : R"(,"ended":false)"));
}

void add_arrow(Trace* trace, const std::vector<Process>& all, const Message& m, size_t number) {
    const Seen& s = all[m.sent.process].events[m.sent.event];
    const Seen& r = all[m.received.process].events[m.received.event];
    const double end = us(r.ns) - (r.phase == Phase::end ? kInside : 0);
    trace->add(fmt::format(R"({{"name":"message","cat":"message","id":{},{}}})", number,
                           head("s", m.sent.process, s.thread, us(s.ns))));
    trace->add(fmt::format(R"({{"name":"message","cat":"message","id":{},"bp":"e",{}}})", number,
                           head("f", m.received.process, r.thread, std::max(end, 0.0))));
}

}  // namespace

std::string chrome_trace(const std::vector<Process>& all, const Matched& m) {
    Trace trace;
    for (size_t i = 0; i < all.size(); ++i) {
        add_names(&trace, i, all[i]);
        add_instants(&trace, i, all[i]);
    }
    for (const Call& c : m.calls) add_call(&trace, all, c);
    for (size_t i = 0; i < m.messages.size(); ++i) add_arrow(&trace, all, m.messages[i], i + 1);
    return trace.whole();
}

}  // namespace viaduct::viptrace
