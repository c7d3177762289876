// Where a draw is found: the same address always gives the same numbers. The row and the coordinate
// complete it. It is fmnes.draws.Address in C++.
#pragma once

#include <cstdint>

namespace fmnes {

struct DrawAddress {
    uint64_t seed;
    uint32_t stream;      // below 2^20
    uint64_t generation;  // below 2^44
};

}  // namespace fmnes
