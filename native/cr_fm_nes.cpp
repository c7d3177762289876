#include "cr_fm_nes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ranking.hpp"

namespace fmnes {

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T>
CrFmNes<T>::CrFmNes(const Constants& constants, const double* by_rank, const Rates* by_feasible,
                    const Address& address)
    : is(constants),
      at(address),
      half(constants.popsize / 2),
      groups(ceil_div(constants.dim, GROUP)),
      blocks(ceil_div(groups, BLOCK)),
      w_hat(constants.popsize),
      rates(constants.popsize + 1),
      mean(groups * GROUP),
      D(groups * GROUP, 1),
      v(groups * GROUP),
      p_sigma(groups * GROUP),
      p_c(groups * GROUP),
      initial(0),
      z(constants.store_draws ? groups * half * GROUP : 0),
      along(half),
      norm2(half),
      best(groups * GROUP),
      overlaid(constants.store_draws && half >= SUMS),
      room(overlaid ? 0 : groups * SUMS * GROUP),
      sums(overlaid ? z : room),
      sums_stride((overlaid ? half : SUMS) * GROUP),
      partial(blocks * std::max(2 * half, COLLECTED)),
      partial_width(std::max(2 * half, COLLECTED)),
      weights(constants.popsize),
      coefficients(4 * half),
      order(constants.popsize) {
    std::copy_n(by_rank, is.popsize, static_cast<double*>(w_hat));
    std::copy_n(by_feasible, is.popsize + 1, static_cast<Rates*>(rates));
}

template <class T>
static Candidates candidates(const CrFmNes<T>& s, const double* f) {
    return {s.is.popsize, f, s.norm2, s.half};
}

template <class T>
void rank(CrFmNes<T>& s, const double* f) {
    sort_by_rank(candidates(s, f), s.order);
    s.survey = survey(candidates(s, f), s.order);
}

template <class T>
void rank_weights(CrFmNes<T>& s, const double* f) {
    hand_out(candidates(s, f), s.order, s.w_hat, s.is.safe, s.weights);
}

template class CrFmNes<double>;
template class CrFmNes<float>;
template void rank(CrFmNes<double>&, const double*);
template void rank(CrFmNes<float>&, const double*);
template void rank_weights(CrFmNes<double>&, const double*);
template void rank_weights(CrFmNes<float>&, const double*);

}  // namespace fmnes
