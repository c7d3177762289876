// Standard normal draws addressed by (seed, stream, generation, row, coordinate).
//
// Philox 4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011) is a bijection of 128-bit counters under a 64-bit key. The key is the seed;
// the counter is the address: (block, row, low 32 bits of the generation, stream and high bits).
// The four words of a block are two uniforms, and these one pair of normals by Box and Muller.
//
// Coordinates come in groups of 16. Blocks 8g to 8g + 7 make group g: the cosines are its first
// eight coordinates, the sines its last eight, so that eight lanes are stored as they are.
#pragma once

#include "address.hpp"
#include "functions.hpp"

namespace fmnes::FMNES_LEVEL {

FMNES_INLINE u64 lane_numbers() {
    constexpr uint64_t numbers[LANES] = {0, 1, 2, 3, 4, 5, 6, 7};
    return load_u64(numbers);
}

// The four words of the eight blocks of a group, each in the low half of a lane. What the high
// halves hold is never looked at: the products take the low halves.
struct Words {
    u64 word[4];
};

FMNES_INLINE Words philox(const Address& at, uint64_t row, uint64_t group) {
    constexpr uint64_t M0 = 0xD2511F53, M1 = 0xCD9E8D57;
    constexpr uint32_t W0 = 0x9E3779B9, W1 = 0xBB67AE85;
    u64 c0 = u64(group * LANES) + lane_numbers();
    u64 c1(row);
    u64 c2(at.generation & 0xffffffff);
    u64 c3((uint64_t{at.stream} << 12) | (at.generation >> 32));
    uint32_t k0 = static_cast<uint32_t>(at.seed), k1 = static_cast<uint32_t>(at.seed >> 32);
    FMNES_UNROLL for (int round = 0; round < 10; ++round) {
        u64 p0 = multiply_low(c0, u64(M0)), p1 = multiply_low(c2, u64(M1));
        c0 = (p1 >> 32) ^ c1 ^ u64(k0);
        c1 = p1;
        c2 = (p0 >> 32) ^ c3 ^ u64(k1);
        c3 = p0;
        k0 += W0;
        k1 += W1;
    }
    return {{c0, c1, c2, c3}};
}

// A uniform in (0, 1] of 52 bits gives the radius, 54 bits of a second one the angle.
FMNES_INLINE void box_muller(const Words& from, f64& first, f64& second) {
    u64 low(0xffffffff);
    u64 u = (from.word[0] << 32) | (from.word[1] & low);
    u64 turn = (from.word[2] << 32) | (from.word[3] & low);
    f64 uniform = f64(2) - as_f64((u >> 12) | u64(ONE_BITS));
    f64 radius = sqrt(f64(-2) * log(uniform));
    f64 cosine, sine;
    cos_sin(turn, cosine, sine);
    first = radius * cosine;
    second = radius * sine;
}

// The sixteen normals of a group.
FMNES_INLINE void draw(const Address& at, uint64_t row, uint64_t group, f64& first, f64& second) {
    box_muller(philox(at, row, group), first, second);
}

}  // namespace fmnes::FMNES_LEVEL
