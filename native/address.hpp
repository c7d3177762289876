// Where a draw is found: the same address gives the same numbers, whoever asks and whenever.
#pragma once

#include <cstdint>

namespace fmnes {

struct Address {
    uint64_t seed;
    uint32_t stream;      // below 2^20
    uint64_t generation;  // below 2^44
};

}  // namespace fmnes
