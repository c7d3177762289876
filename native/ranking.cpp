#include "ranking.hpp"

#include <algorithm>
#include <limits>

namespace fmnes {

static bool feasible(const Candidates& of, int64_t i) {
    return of.f[i] < std::numeric_limits<double>::infinity();
}

// What candidates of one kind, feasible or not, are compared by.
static double key(const Candidates& of, int64_t i) {
    return feasible(of, i) ? of.f[i] : of.norm2[i % of.norms];
}

void sort_by_rank(const Candidates& of, int64_t* order) {
    for (int64_t i = 0; i < of.count; ++i) order[i] = i;
    std::sort(order, order + of.count, [&](int64_t i, int64_t j) {
        const bool good_i = feasible(of, i), good_j = feasible(of, j);
        if (good_i != good_j) return good_i;
        const double a = key(of, i), b = key(of, j);
        return a != b ? a < b : i < j;  // a total order: no two candidates are equal
    });
}

void hand_out(const Candidates& of, const int64_t* order, const double* by_rank, bool share_ties,
              double* weights) {
    const auto same = [&](int64_t i, int64_t j) {
        return feasible(of, i) == feasible(of, j) && key(of, i) == key(of, j);
    };
    for (int64_t first = 0; first < of.count;) {
        int64_t last = first + 1;
        double total = by_rank[first];
        while (share_ties && last < of.count && same(order[first], order[last]))
            total += by_rank[last++];
        for (int64_t k = first; k < last; ++k)
            weights[order[k]] = total / static_cast<double>(last - first);
        first = last;
    }
}

}  // namespace fmnes
