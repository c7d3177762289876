// The order of candidates, and the weights they get by it.
#pragma once

#include <cstdint>

namespace fmnes {

struct Candidates {
    int64_t count;
    const double* f;
    const double* norm2;  // |z|^2, candidate i's at i % norms: mirrored candidates share theirs
    int64_t norms;
};

// order <- the candidates from the best to the worst: feasible ones (values below infinity) by
// value, then infeasible ones, the nearest to the mean first; equal ones by their number.
void sort_by_rank(const Candidates& of, int64_t* order);

// What a generation's values say by themselves.
struct Survey {
    int64_t nan, feasible;
    int64_t best;              // the first of the best candidates
    double least, most;        // of the feasible values; inf where there is none
    double size;               // largest |value| of the feasible ones
    double median;             // infeasible ones count as inf
    bool flat;                 // all equal and finite
};

Survey survey(const Candidates& of, const int64_t* order);

// weights[i] <- by_rank[the rank of i]; equal candidates share theirs if they may.
void hand_out(const Candidates& of, const int64_t* order, const double* by_rank, bool share_ties,
              double* weights);

}  // namespace fmnes
