#include "auto.hpp"

#include <algorithm>

namespace fmnes {

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T>
AutoSearch<T>::AutoSearch(int64_t dim, int64_t popsize, const AutoConstants& numbers,
                          const NoiseConstants& of_noise, const double* by_rank,
                          const double* by_score_rank, const Rates* by_feasible,
                          const DrawAddress& start)
    : dim(dim),
      popsize(popsize),
      constants(numbers),
      noise(of_noise),
      address(start),
      half(popsize / 2),
      groups(ceil_div(dim, GROUP)),
      blocks(ceil_div(groups, BLOCK)),
      w_hat(popsize),
      scores(popsize),
      rates(popsize + 1),
      mean(groups * GROUP),
      D(groups * GROUP, 1),
      p_sigma(groups * GROUP),
      p_c(groups * GROUP),
      D_gradient(groups * GROUP),
      m_gradient(groups * GROUP),
      frame(0),
      S(0),
      path_along(0),
      initial(0),
      z(0),
      along(0),
      norm2(half),
      best(groups * GROUP),
      partial(0),
      weights(popsize),
      by_score(popsize),
      w(half),
      by_row(0),
      order(popsize),
      totals(0),
      gz_along(0),
      gm_along(0),
      q_along(0),
      tilt(0),
      S_new(0),
      lengths(0),
      norms(0),
      sources(0),
      memory(0) {
    std::copy_n(by_rank, popsize, w_hat.data());
    std::copy_n(by_score_rank, popsize, scores.data());
    std::copy_n(by_feasible, popsize + 1, rates.data());
    make_room(1);
}

template <class T>
void AutoSearch<T>::make_room(int64_t axes) {
    k = 0, drawn = false;
    if (axes == room) return;
    room = axes;
    const int64_t most = SCOUTS + room;
    frame.resize(groups * most * GROUP);
    z.resize(groups * z_rows() * GROUP);
    S.resize(room);
    along.resize(half * most);
    by_row.resize(half * (OF_ALONG + most));
    for (Array<double>* one :
         {&path_along, &gz_along, &gm_along, &q_along, &tilt, &S_new, &lengths, &norms})
        one->resize(padded(most));
    sources.resize(most);
    // A group of sums and of draws that are made again, or one vector of a part.
    const int64_t rows = std::max(OF_ALONG + most + 1 + slots(room), PART);
    partial_width = padded(COLLECTED) + sums_width() + 8 * lanes() + GROUP * rows;
    partial.resize(blocks * partial_width);
    totals.resize(sums_width());
    const int64_t wide = padded(room), each = room * wide;
    memory.resize(7 * each + 2 * 3 * each + SCOUTS * wide);
    double* next = memory.data();
    for (Small* one : {&M, &N, &H, &Z, &P, &of_V, &of_Y}) *one = {next, wide}, next += each;
    for (Small* one : {&U, &W}) *one = {next, 3 * wide}, next += 3 * each;
    V_scouts = {next, wide};
}

template <class T>
static Candidates candidates(const AutoSearch<T>& s, const double* f) {
    return {s.popsize, f, s.norm2.data(), s.half};
}

template <class T>
void rank(AutoSearch<T>& s, const double* f) {
    sort_by_rank(candidates(s, f), s.order.data());
    static_cast<Survey&>(s.shown) = survey(candidates(s, f), s.order.data());
}

template <class T>
void rank_weights(AutoSearch<T>& s, const double* f) {
    hand_out(candidates(s, f), s.order.data(), s.w_hat.data(), true, s.weights.data());
    hand_out(candidates(s, f), s.order.data(), s.scores.data(), true, s.by_score.data());
}

template class AutoSearch<double>;
template class AutoSearch<float>;
template void rank(AutoSearch<double>&, const double*);
template void rank(AutoSearch<float>&, const double*);
template void rank_weights(AutoSearch<double>&, const double*);
template void rank_weights(AutoSearch<float>&, const double*);

}  // namespace fmnes
