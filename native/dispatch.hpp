// The instruction level in use: the best one of this machine, until set_level() chooses another.

#pragma once

#include <span>
#include <string_view>

#include "kernels.hpp"

namespace fmnes {

// The table in use.
const Kernels& kernels();

// All tables of this build, from the plainest level to the best.
std::span<const Kernels* const> built();

// Whether this machine can run a level of built().
bool runs_here(std::string_view level);

// Use a level of built() that runs_here(). For any other: change nothing and return false.
bool set_level(std::string_view level);

}  // namespace fmnes
