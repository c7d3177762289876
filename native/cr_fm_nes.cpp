#include "cr_fm_nes.hpp"

#include <algorithm>

namespace fmnes {

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T>
CrFmNes<T>::CrFmNes(const Setup& setup, const Constants& numbers, const double* by_rank,
                    const Rates* by_feasible, const DrawAddress& start)
    : dim(setup.dim),
      popsize(setup.popsize),
      safe(setup.safe),
      store_draws(setup.store_draws),
      constants(numbers),
      address(start),
      half(popsize / 2),
      groups(ceil_div(dim, GROUP)),
      blocks(ceil_div(groups, BLOCK)),
      w_hat(popsize),
      rates(popsize + 1),
      mean(groups * GROUP),
      D(groups * GROUP, 1),
      v(groups * GROUP),
      p_sigma(groups * GROUP),
      p_c(groups * GROUP),
      initial(0),
      z(store_draws ? groups * half * GROUP : 0),
      along(half),
      norm2(half),
      best(groups * GROUP),
      overlaid(store_draws && half >= SUMS),
      room(overlaid ? 0 : groups * SUMS * GROUP),
      sums(overlaid ? z.data() : room.data()),
      sums_stride((overlaid ? half : SUMS) * GROUP),
      partial_width(std::max(2 * half, COLLECTED)),
      partial(blocks * partial_width),
      weights(popsize),
      odd_hat(half),
      odd(half),
      even(half),
      even_along(half),
      order(popsize) {
    std::copy_n(by_rank, popsize, w_hat.data());
    std::copy_n(by_feasible, popsize + 1, rates.data());
}

template <class T>
static Candidates candidates(const CrFmNes<T>& s, const double* f) {
    return {s.popsize, f, s.norm2.data(), s.half};
}

template <class T>
void rank(CrFmNes<T>& s, const double* f) {
    sort_by_rank(candidates(s, f), s.order.data());
    static_cast<Survey&>(s.shown) = survey(candidates(s, f), s.order.data());
}

template <class T>
void rank_weights(CrFmNes<T>& s, const double* f) {
    hand_out(candidates(s, f), s.order.data(), s.w_hat.data(), s.safe, s.weights.data());
}

template class CrFmNes<double>;
template class CrFmNes<float>;
template void rank(CrFmNes<double>&, const double*);
template void rank(CrFmNes<float>&, const double*);
template void rank_weights(CrFmNes<double>&, const double*);
template void rank_weights(CrFmNes<float>&, const double*);

}  // namespace fmnes
