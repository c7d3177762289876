#include "ranking.hpp"

#include <algorithm>
#include <cmath>
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

Survey survey(const Candidates& from, const int64_t* order) {
    constexpr double INF = std::numeric_limits<double>::infinity();
    const double* f = from.f;
    Survey of{};
    of.least = INF, of.most = -INF, of.size = 0;
    of.flat = std::isfinite(f[0]);
    for (int64_t i = 0; i < from.count; ++i) {
        of.nan += std::isnan(f[i]);
        of.flat = of.flat && f[i] == f[0];
        if (!(f[i] < INF)) continue;
        ++of.feasible;
        if (f[i] < of.least) of.least = f[i], of.best = i;
        of.most = std::max(of.most, f[i]);
        of.size = std::max(of.size, std::abs(f[i]));
    }
    if (of.feasible == 0) of.most = of.size = INF;
    const auto value = [&](int64_t k) { return k < of.feasible ? f[order[k]] : INF; };
    const double low = value((from.count - 1) / 2), high = value(from.count / 2);
    of.median = low / 2 + high / 2;  // the sum of two values of 1e308 would overflow
    return of;
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
