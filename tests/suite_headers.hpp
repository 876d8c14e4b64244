// SPDX-License-Identifier: BSD-2-Clause
// Compiled once for each large suite (tests/CMakeLists.txt): reading these headers was more than a third of the time
// that compiling a test took. Tests include what they use all the same.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>
