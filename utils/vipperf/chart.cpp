// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipperf/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "utils/common/html.hpp"
#include "utils/vipperf/sizes.hpp"

namespace viaduct::vipperf {

namespace {

constexpr double kWidth = 880, kHeight = 400;
constexpr double kLeft = 74, kRight = 230, kTop = 20, kBottom = 32;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr double kLabelStep = 17;  // between names at the right edge

class Drawing {
public:
    Drawing(const ChartOptions& options, const std::vector<Curve>& curves)
        : options_(options), curves_(curves) {
        for (const Curve& c : curves) {
            for (const auto& [bytes, value] : c.points) {
                least_size_ = std::min(least_size_, bytes);
                most_size_ = std::max(most_size_, bytes);
                least_ = std::min(least_, value);
                most_ = std::max(most_, value);
            }
        }
        if (most_size_ == least_size_) most_size_ = least_size_ * 2;
        if (options.logarithmic) {
            low_ = std::pow(10, std::floor(std::log10(least_)));
            high_ = std::pow(10, std::ceil(std::log10(most_ * 1.02)));
        } else {
            low_ = 0;
            step_ = nice_step(most_ / 5);
            high_ = std::ceil(most_ * 1.02 / step_) * step_;
        }
    }

    std::string draw() {
        out_ = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", kWidth, kHeight,
                           tools::escaped(options_.title));
        grid_of_sizes();
        options_.logarithmic ? grid_of_decades() : grid_of_steps();
        out_ += fmt::format("<text class=\"axis\" x=\"{}\" y=\"{}\">{}</text>\n", kLeft - 8, kTop - 6,
                            tools::escaped(options_.unit));
        for (const Curve& c : curves_) curve(c);
        names();
        return out_ + "</svg>\n";
    }

private:
    static double nice_step(double rough) {
        const double unit = std::pow(10, std::floor(std::log10(std::max(rough, 1e-9))));
        for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
            if (unit * factor >= rough) return unit * factor;
        }
        return unit * 10;
    }

    double x_of(uint64_t bytes) const {
        const double span =
            std::log2(static_cast<double>(most_size_)) - std::log2(static_cast<double>(least_size_));
        return kLeft + (std::log2(static_cast<double>(bytes)) - std::log2(static_cast<double>(least_size_))) /
                           span * kPlotWidth;
    }

    double y_of(double value) const {
        const double share = options_.logarithmic ? (std::log10(value) - std::log10(low_)) /
                                                        (std::log10(high_) - std::log10(low_))
                                                  : (value - low_) / (high_ - low_);
        return kTop + (1 - share) * kPlotHeight;
    }

    void grid_of_sizes() {
        const double powers = std::log2(static_cast<double>(most_size_)) - std::log2(static_cast<double>(least_size_));
        const int every = powers > 11 ? 2 : 1;
        int n = 0;
        for (uint64_t bytes = least_size_; bytes <= most_size_; bytes *= 2, ++n) {
            if (n % every != 0 && bytes != most_size_) continue;
            if (bytes != most_size_ && x_of(most_size_) - x_of(bytes) < 52) continue;
            const double x = x_of(bytes);
            out_ += fmt::format("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>",
                                x, kTop, kTop + kPlotHeight);
            out_ +=
                fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                            x, kTop + kPlotHeight + 18, size_text(bytes));
        }
    }

    void horizontal(double value, bool with_label) {
        const double y = y_of(value);
        out_ += fmt::format("<line class=\"{}\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
                            with_label ? "grid" : "fine", kLeft, kLeft + kPlotWidth, y, y);
        if (with_label)
            out_ += fmt::format("<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                                kLeft - 8, y + 4, options_.label(value));
    }

    void grid_of_decades() {
        for (double decade = low_; decade <= high_ * 1.001; decade *= 10) {
            horizontal(decade, true);
            for (int i = 2; i < 10 && decade * 10 <= high_ * 1.001; ++i) horizontal(decade * i, false);
        }
    }

    void grid_of_steps() {
        for (double value = 0; value <= high_ * 1.001; value += step_) horizontal(value, true);
    }

    void curve(const Curve& c) {
        if (c.points.empty()) return;
        const std::string& colour = c.colour;
        out_ += fmt::format("<polyline class=\"curve {}\" points=\"", colour);
        for (const auto& [bytes, value] : c.points)
            out_ += fmt::format("{:.1f},{:.1f} ", x_of(bytes), y_of(value));
        out_ += "\"/>\n";
        for (const auto& [bytes, value] : c.points) {
            out_ += fmt::format(
                "<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}, {}: {} "
                "{}</title></circle>\n",
                colour, x_of(bytes), y_of(value), tools::escaped(c.name), size_text(bytes), options_.label(value),
                tools::escaped(options_.unit));
        }
        names_.push_back({y_of(c.points.back().second), x_of(c.points.back().first), c.name, colour});
    }

    // Each name beside the end of its curve, moved apart where curves end together.
    void names() {
        std::sort(names_.begin(), names_.end(), [](const Name& a, const Name& b) { return a.y < b.y; });
        double below = kTop;
        for (Name& n : names_) {
            n.at = std::max(n.y, below);
            below = n.at + kLabelStep;
        }
        double above = kTop + kPlotHeight;
        for (auto n = names_.rbegin(); n != names_.rend(); ++n) {
            n->at = std::min(n->at, above);
            above = n->at - kLabelStep;
        }
        for (const Name& n : names_) {
            const double x = kLeft + kPlotWidth + 22;
            out_ += fmt::format("<path class=\"lead {}\" d=\"M{:.1f},{:.1f} L{:.1f},{:.1f}\"/>", n.colour,
                                n.x + 5, n.y, x - 4, n.at);
            out_ += fmt::format("<text class=\"name {}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", n.colour, x,
                                n.at + 4, tools::escaped(n.text));
        }
    }

    struct Name {
        double y, x;
        std::string text, colour;
        double at = 0;
    };
    const ChartOptions& options_;
    const std::vector<Curve>& curves_;
    uint64_t least_size_ = UINT64_MAX, most_size_ = 0;
    double least_ = 1e300, most_ = 0;
    double low_ = 0, high_ = 1, step_ = 1;
    std::vector<Name> names_;
    std::string out_;
};

}  // namespace

std::string svg_of(const ChartOptions& options, const std::vector<Curve>& curves) {
    const bool any =
        std::any_of(curves.begin(), curves.end(), [](const Curve& c) { return !c.points.empty(); });
    return any ? Drawing(options, curves).draw() : "";
}

}  // namespace viaduct::vipperf
