// Which instruction level runs: the best that the machine has, until somebody asks for another.

#pragma once

#include <span>
#include <string_view>

#include "kernels.hpp"

namespace fmnes {

// The table in use.
const Kernels& kernels();

// Every table in this binary, from the plainest level to the best.
std::span<const Kernels* const> built();

// Whether this machine can run a level of built().
bool runs_here(std::string_view level);

// Use a level of built() that runs_here(); false, and nothing changed, for any other.
bool set_level(std::string_view level);

}  // namespace fmnes
