// SPDX-License-Identifier: BSD-2-Clause
// viaduct_distance: how far the first two processors are from each other at this moment: "near 57".
#include <cstdio>

#include "utils/measure/machine.hpp"
#include "utils/measure/pair.hpp"

using namespace viaduct::measure;

int main() {
    int cpus[2];
    if (!Pair::pick_processors(&cpus[0], &cpus[1])) {
        std::fprintf(stderr, "only one processor is allowed here\n");
        return 1;
    }
    Pair pair = Pair::split(4096, cpus[0], cpus[1]);
    const double ns = pair.distance();
    if (pair.leader()) std::printf("%s %.0f\n", name_of(distance_of(ns)), ns);
    return 0;
}
