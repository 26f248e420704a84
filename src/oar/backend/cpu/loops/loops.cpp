#include "oar/backend/cpu/loops/loops.h"

namespace oar::cpu {

template <size_t N>
StridedLoop<N>::StridedLoop(const std::array<const oar_tensor*, N>& tensors) {
  const oar_tensor& first = *tensors[0];
  total_ = first.numel;
  for (size_t k = 0; k < N; ++k) data_[k] = static_cast<char*>(tensors[k]->data);
  for (int axis = 0; axis < first.ndim; ++axis) {
    const int64_t size = first.shape[axis];
    if (size == 1) continue;
    Strides stride;
    for (size_t k = 0; k < N; ++k)
      stride[k] = tensors[k]->strides[axis] *
                  static_cast<int64_t>(size_of(static_cast<DType>(tensors[k]->dtype)));
    push(size, stride);
  }
  if (rank_ == 0) push(1, Strides{});
}

template <size_t N>
void StridedLoop<N>::push(int64_t size, const Strides& stride) {
  if (rank_ > 0) {  // does the previous axis simply continue this one?
    bool merges = true;
    for (size_t k = 0; k < N; ++k) merges &= strides_[rank_ - 1][k] == stride[k] * size;
    if (merges) {
      shape_[rank_ - 1] *= size;
      strides_[rank_ - 1] = stride;
      return;
    }
  }
  internal_check(rank_ < kMaxRank, "a tensor has more than {} axes", kMaxRank);
  shape_[rank_] = size;
  strides_[rank_++] = stride;
}

template <size_t N>
void StridedLoop<N>::run(FunctionRef<void(const Pointers&, const Strides&, int64_t)> body,
                         int64_t grain) const {
  if (total_ == 0) return;
  const auto row_by_row = [&](Pointers p, const Strides& s, int64_t n, const Strides& across,
                              int64_t rows) {
    for (int64_t row = 0; row < rows; ++row) {
      body(p, s, n);
      for (size_t k = 0; k < N; ++k) p[k] += across[k];
    }
  };
  parallel_for(0, total_, grain,
               [&](int64_t begin, int64_t end) { range(begin, end, row_by_row); });
}

template <size_t N>
void StridedLoop<N>::range(int64_t begin, int64_t end, FunctionRef<Rows> body) const {
  const size_t inner = rank_ - 1;
  const int64_t length = shape_[inner];
  const Strides across = inner > 0 ? strides_[inner - 1] : Strides{};
  std::array<int64_t, kMaxRank> index;
  int64_t rest = begin / length;
  for (size_t axis = inner; axis-- > 0;) {
    index[axis] = rest % shape_[axis];
    rest /= shape_[axis];
  }
  int64_t at = begin % length;
  while (begin < end) {
    Pointers p;
    for (size_t k = 0; k < N; ++k) {
      p[k] = data_[k] + at * strides_[inner][k];
      for (size_t axis = 0; axis < inner; ++axis) p[k] += index[axis] * strides_[axis][k];
    }
    const int64_t count = std::min(end - begin, length - at);
    const int64_t rows =
        count < length || inner == 0
            ? 1
            : std::min((end - begin) / length, shape_[inner - 1] - index[inner - 1]);
    body(p, strides_[inner], count, across, rows);
    begin += count * rows;
    at = 0;
    int64_t step = rows;
    for (size_t axis = inner; axis-- > 0; step = 1) {
      index[axis] += step;
      if (index[axis] < shape_[axis]) break;
      index[axis] = 0;
    }
  }
}

template class StridedLoop<1>;
template class StridedLoop<2>;
template class StridedLoop<3>;
template class StridedLoop<4>;
template class StridedLoop<5>;

}  // namespace oar::cpu
