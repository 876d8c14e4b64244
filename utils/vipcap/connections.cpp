// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipcap/connections.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "utils/common/html.hpp"

namespace viaduct::vipcap {

namespace {

constexpr size_t kMostArrows = 5000;
constexpr int kLeft = 260, kRight = 900, kTop = 70, kStep = 22, kWide = 1160;

// Requests, and what takes them back, name no link of the other end.
bool is_first(const Frame& f) { return f.destination() == 0; }

const char* colour_of(const Frame& f) {
    constexpr uint16_t kAgain = 8;
    if (f.damaged || (f.flags() & kAgain) != 0) return "#c0392b";
    if (f.kind() < 16) return "#2471a3";
    if (f.kind() < 19) return "#7d3c98";
    return is_sequenced(f.kind()) ? "#1e8449" : "#808b96";
}

bool holds(const Connection& c, const Frame& f) {
    if (is_first(f)) return c.first.is(f.from, f.source()) || c.second.is(f.from, f.source());
    return (c.first.is(f.from, f.source()) && c.second.is(f.to, f.destination())) ||
           (c.second.is(f.from, f.source()) && c.first.is(f.to, f.destination()));
}

}  // namespace

std::vector<Connection> connections_in(const std::vector<KeptFrame>& all) {
    std::vector<Connection> found;
    for (const KeptFrame& kept : all) {
        const Frame& f = kept.frame;
        if (f.version_answer || f.damaged || is_first(f) || f.source() == 0) continue;
        if (std::any_of(found.begin(), found.end(), [&](const Connection& c) { return holds(c, f); })) continue;
        found.push_back({{f.from, f.source()}, {f.to, f.destination()}, {}});
    }
    for (size_t i = 0; i < all.size(); ++i) {
        const Frame& f = all[i].frame;
        if (f.version_answer || f.damaged) continue;
        const auto c = std::find_if(found.begin(), found.end(), [&](const Connection& one) { return holds(one, f); });
        if (c == found.end()) continue;
        if (c->frames.empty() && c->second.is(f.from, f.source())) std::swap(c->first, c->second);
        c->frames.push_back(i);
    }
    return found;
}

std::string chart_of(const Connection& c, const std::vector<KeptFrame>& all, const std::string& title) {
    const size_t shown = std::min(c.frames.size(), kMostArrows);
    const int bottom = kTop + static_cast<int>(shown) * kStep + 30;
    std::string out = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title></head>\n"
        "<body style=\"font-family: sans-serif\"><h1 style=\"font-size: 120%\">{0}</h1>\n"
        "<p>{1} frames{2}. Blue: the connection begins. Green: data. Grey: acknowledgements. Violet: it ends. Red: "
        "sent "
        "again.</p>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{3}\" height=\"{4}\" font-size=\"12\">\n"
        "<defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"3\" orient=\"auto\">"
        "<path d=\"M0,0 L7,3 L0,6 z\"/></marker></defs>\n",
        tools::escaped(title), c.frames.size(),
        shown < c.frames.size() ? fmt::format(", the first {} are shown", shown) : "",
        kWide, bottom);
    for (const auto& [end, x] : {std::pair{&c.first, kLeft}, std::pair{&c.second, kRight}})
        out += fmt::format(
            "<text x=\"{0}\" y=\"30\" text-anchor=\"middle\">{1}, link {2:08x}</text>"
            "<line x1=\"{0}\" y1=\"40\" x2=\"{0}\" y2=\"{3}\" stroke=\"black\"/>\n",
            x, text_of(end->address), end->link, bottom);
    const double began = c.frames.empty() ? 0 : all[c.frames[0]].frame.seconds;
    for (size_t i = 0; i < shown; ++i) {
        const Frame& f = all[c.frames[i]].frame;
        const bool right = c.first.is(f.from, f.source());
        const int y = kTop + static_cast<int>(i) * kStep;
        out += fmt::format(
            "<text x=\"10\" y=\"{0}\">{1:.6f} s</text><line x1=\"{2}\" y1=\"{0}\" x2=\"{3}\" y2=\"{4}\" stroke=\"{5}\" "
            "marker-end=\"url(#tip)\"/><text x=\"{6}\" y=\"{7}\" text-anchor=\"middle\">{8}</text>\n",
            y, f.seconds - began, right ? kLeft : kRight, right ? kRight : kLeft, y + 8, colour_of(f),
            (kLeft + kRight) / 2, y - 1, tools::escaped(summary_of(f)));
    }
    return out + "</svg></body></html>\n";
}

}  // namespace viaduct::vipcap
