// The order of candidates, and the weights that they get by it.
#pragma once

#include <cstdint>

#include "records.hpp"

namespace fmnes {

struct Candidates {
    int64_t count;
    const double* f;
    const double* norm2;  // |z|^2, candidate i's at i % norms: mirrored candidates share theirs
    int64_t norms;
};

// order <- the candidates from the best to the worst: feasible ones (values below infinity) by
// value, then infeasible ones, the nearest to the mean first; equal ones by their number.
void sort_by_rank(const Candidates& all, int64_t* order);

// What the values show.
Survey survey(const Candidates& all, const int64_t* order);

// weights[i] <- by_rank[the rank of i]; with share_ties equal candidates share theirs.
void hand_out(const Candidates& all, const int64_t* order, const double* by_rank, bool share_ties,
              double* weights);

}  // namespace fmnes
