#include "ranking.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fmnes {

static bool feasible(const Candidates& all, int64_t i) {
    return all.f[i] < std::numeric_limits<double>::infinity();
}

// What two feasible candidates, or two infeasible ones, are compared by.
static double key(const Candidates& all, int64_t i) {
    return feasible(all, i) ? all.f[i] : all.norm2[i % all.norms];
}

void sort_by_rank(const Candidates& all, int64_t* order) {
    for (int64_t i = 0; i < all.count; ++i) order[i] = i;
    std::sort(order, order + all.count, [&](int64_t i, int64_t j) {
        const bool good_i = feasible(all, i), good_j = feasible(all, j);
        if (good_i != good_j) return good_i;
        const double a = key(all, i), b = key(all, j);
        return a != b ? a < b : i < j;  // a total order: no two candidates are equal
    });
}

Survey survey(const Candidates& all, const int64_t* order) {
    constexpr double INF = std::numeric_limits<double>::infinity();
    const double* f = all.f;
    Survey found{};
    found.least = INF, found.most = -INF;
    found.flat = std::isfinite(f[0]);
    for (int64_t i = 0; i < all.count; ++i) {
        found.nan += std::isnan(f[i]);
        found.flat = found.flat && f[i] == f[0];
        if (!(f[i] < INF)) continue;
        ++found.feasible;
        found.least = std::min(found.least, f[i]);
        found.most = std::max(found.most, f[i]);
        found.size = std::max(found.size, std::abs(f[i]));
    }
    if (found.feasible == 0) found.most = found.size = INF;
    const auto value = [&](int64_t k) { return k < found.feasible ? f[order[k]] : INF; };
    const double low = value((all.count - 1) / 2), high = value(all.count / 2);
    found.median = low / 2 + high / 2;  // the sum of two values of 1e308 would overflow
    return found;
}

void hand_out(const Candidates& all, const int64_t* order, const double* by_rank, bool share_ties,
              double* weights) {
    const auto same = [&](int64_t i, int64_t j) {
        return feasible(all, i) == feasible(all, j) && key(all, i) == key(all, j);
    };
    for (int64_t first = 0; first < all.count;) {
        int64_t last = first + 1;
        double total = by_rank[first];
        while (share_ties && last < all.count && same(order[first], order[last]))
            total += by_rank[last++];
        for (int64_t k = first; k < last; ++k)
            weights[order[k]] = total / static_cast<double>(last - first);
        first = last;
    }
}

}  // namespace fmnes
