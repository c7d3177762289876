// Standard normal draws addressed by (seed, stream, generation, row, coordinate).
//
// Philox 4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011) is a bijection of 128-bit counters under a 64-bit key. The key is the seed;
// the counter is the address: (block, row, low 32 bits of the generation, stream and high bits).
// The four words of a block make two uniforms, and these make one pair of normals (Box-Muller).
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

// The four words of each block, in the low halves of lanes. The high halves are never used: the
// products take the low halves.
template <int P>
struct Words {
    Bits<P> word[4];
};

// The keys of the ten rounds. They stay in memory: an operand from memory costs nothing extra.
struct Keys {
    uint64_t k0[10], k1[10];

    explicit Keys(uint64_t seed) {
        uint32_t low = static_cast<uint32_t>(seed), high = static_cast<uint32_t>(seed >> 32);
        for (int round = 0; round < 10; ++round) {
            k0[round] = low, k1[round] = high;
            low += 0x9E3779B9, high += 0xBB67AE85;
        }
    }
};

// Philox for the eight blocks of a group. Of the counter only the block differs from lane to lane,
// and only the row from row to row; it takes three rounds until every word depends on both. The
// constructor computes what does not depend on the row.
class Group {
  public:
    FMNES_INLINE Group(const Keys& keys, const DrawAddress& at, int64_t group) : keys_(keys) {
        const uint64_t c2 = at.generation & LOW;
        const uint64_t c3 = (uint64_t{at.stream} << 12) | (at.generation >> 32);
        const uint64_t q1 = M1 * c2;
        row_mask_ = (q1 >> 32) ^ keys.k0[0];  // after round 1 c0 is the row ^ this
        const u64 block = u64(static_cast<uint64_t>(group) * LANES) + lane_numbers();
        const u64 p0 = multiply_low(block, u64(M0));
        c2_ = p0 ^ u64(keys.k1[1]);
        c1_ = multiply_low((p0 >> 32) ^ u64(c3 ^ keys.k1[0]), u64(M1));
        p0_ = multiply_low((c1_ >> 32) ^ u64(q1 ^ keys.k0[1]), u64(M0));
    }

    // The words of ROWS rows from `row` on, in lockstep.
    template <int ROWS>
    FMNES_INLINE Words<ROWS * PARTS> words(int64_t row) const {
        using Many = Bits<ROWS * PARTS>;
        Many high, low;  // of round 2
        FMNES_UNROLL for (int i = 0; i < ROWS * PARTS; ++i) {
            const uint64_t q0 = M0 * ((static_cast<uint64_t>(row + i / PARTS) ^ row_mask_) & LOW);
            high.part[i] = (q0 >> 32) - u64w{};
            low.part[i] = q0 - u64w{};
        }
        Many p0 = repeat<ROWS>(p0_), p1 = multiply_low(repeat<ROWS>(c2_) ^ high, Many(M1));
        Many c0 = (p1 >> 32) ^ repeat<ROWS>(c1_) ^ Many(keys_.k0[2]), c1 = p1;
        Many c2 = (p0 >> 32) ^ low ^ Many(keys_.k1[2]), c3 = p0;
        FMNES_UNROLL for (int round = 3; round < 10; ++round) {
            p0 = multiply_low(c0, Many(M0)), p1 = multiply_low(c2, Many(M1));
            c0 = (p1 >> 32) ^ c1 ^ Many(keys_.k0[round]);
            c1 = p1;
            c2 = (p0 >> 32) ^ c3 ^ Many(keys_.k1[round]);
            c3 = p0;
        }
        return {{c0, c1, c2, c3}};
    }

  private:
    static constexpr uint64_t M0 = 0xD2511F53, M1 = 0xCD9E8D57, LOW = 0xffffffff;

    template <int ROWS>
    static FMNES_INLINE Bits<ROWS * PARTS> repeat(u64 a) {
        Bits<ROWS * PARTS> all;
        FMNES_UNROLL for (int i = 0; i < ROWS * PARTS; ++i) all.part[i] = a.part[i % PARTS];
        return all;
    }

    const Keys& keys_;
    uint64_t row_mask_;
    u64 c1_, c2_, p0_;
};

// A uniform in (0, 1] of 52 bits gives the radius, 54 bits of a second one give the angle.
template <int P>
FMNES_INLINE void box_muller(const Words<P>& from, Floats<P>& first, Floats<P>& second) {
    const Bits<P> low(0xffffffff);
    const Bits<P> u = (from.word[0] << 32) | (from.word[1] & low);
    const Bits<P> turn = (from.word[2] << 32) | (from.word[3] & low);
    const Floats<P> uniform = Floats<P>(2) - as_f64((u >> 12) | Bits<P>(ONE_BITS));
    const Floats<P> radius = sqrt(scaled_log<-2>(uniform));
    Floats<P> cosine, sine;
    cos_sin(turn, cosine, sine);
    first = radius * cosine;
    second = radius * sine;
}

// The sixteen normals of each of ROWS rows of a group: the first eight, and the last eight.
template <int ROWS>
FMNES_INLINE void draw(const Group& group, int64_t row, f64 (&first)[ROWS], f64 (&second)[ROWS]) {
    Floats<ROWS * PARTS> a, b;
    box_muller(group.words<ROWS>(row), a, b);
    FMNES_UNROLL for (int i = 0; i < ROWS * PARTS; ++i) {
        first[i / PARTS].part[i % PARTS] = a.part[i];
        second[i / PARTS].part[i % PARTS] = b.part[i];
    }
}

// Call f<ROWS>(row) for all rows from low to high - 1, several at a time: while one row waits for a
// result, the processor works on the others. (Eight lanes in narrow registers are already several
// independent chains.)
template <class F>
FMNES_INLINE void in_lockstep(int64_t low, int64_t high, F f) {
    constexpr int MANY = PARTS == 1 ? 4 : 2;
    for (; low + MANY <= high; low += MANY) f.template operator()<MANY>(low);
    if constexpr (MANY == 4)
        if (low + 2 <= high) f.template operator()<2>(low), low += 2;
    if (low < high) f.template operator()<1>(low);
}

}  // namespace fmnes::FMNES_LEVEL
