// SPDX-License-Identifier: BSD-2-Clause
// The reader of PMI_process_mapping.
#include "mpi-adi/rte/process_mapping.hpp"

#include <charconv>

namespace viaduct::rte {
namespace {

struct Block {
    int first_node;
    int nodes;
    int processes;
};

// Takes `word` from the front of the text, or nothing.
bool skip(std::string_view* text, std::string_view word) {
    if (!text->starts_with(word)) return false;
    text->remove_prefix(word.size());
    return true;
}

bool take_number(std::string_view* text, int* value) {
    const auto [rest, bad] = std::from_chars(text->data(), text->data() + text->size(), *value);
    if (bad != std::errc() || *value < 0) return false;
    text->remove_prefix(static_cast<size_t>(rest - text->data()));
    return true;
}

bool take_block(std::string_view* text, Block* block) {
    return skip(text, "(") && take_number(text, &block->first_node) && skip(text, ",") &&
           take_number(text, &block->nodes) && skip(text, ",") && take_number(text, &block->processes) &&
           skip(text, ")");
}

}  // namespace

std::optional<std::vector<int>> nodes_from_mapping(std::string_view text, int size) {
    if (!skip(&text, "(vector")) return std::nullopt;
    std::vector<Block> blocks;
    bool has_ranks = false;
    while (skip(&text, ",")) {
        Block block;
        if (!take_block(&text, &block)) return std::nullopt;
        has_ranks |= block.nodes > 0 && block.processes > 0;
        blocks.push_back(block);
    }
    if (text != ")" || !has_ranks) return std::nullopt;

    std::vector<int> nodes;
    const auto wanted = static_cast<size_t>(size);
    while (nodes.size() < wanted) {
        for (const Block& block : blocks) {
            if (block.processes == 0) continue;
            for (int node = 0; node < block.nodes && nodes.size() < wanted; node++)
                for (int i = 0; i < block.processes && nodes.size() < wanted; i++)
                    nodes.push_back(block.first_node + node);
        }
    }
    return nodes;
}

}  // namespace viaduct::rte
