// The micro kernels of one instruction set, by the size of their tile.
#pragma once

namespace oar::cpu {

// C (rows x vectors) = A · B, or added to C. A(i, k) is a[i * a_row + k * a_step]; rows of B and C are
// contiguous.
template <class T>
struct MicroTile {
  long depth;
  const T* a;
  long a_row, a_step;
  const T* b;
  long b_step;
  T* c;
  long c_row;
  bool accumulate;
};

// The same with rows of B at any offsets, and the vectors of a row some distance apart: a
// convolution reads its image like this, without columns. A is contiguous along k.
template <class T>
struct MicroPlaces {
  long depth;
  const T* a;
  long a_row;
  const T* b;
  const long* places;  // of row k, from b
  long b_vector;
  T* c;
  long c_row, c_vector;
};

inline constexpr int kMicroVectors = 3;
inline constexpr int kAddedRows = 8;

template <class T>
struct MicroTable {
  int lanes;  // elements of a vector
  int rows;   // the tallest tile
  void (*run[8][kMicroVectors])(const MicroTile<T>&);
  void (*run_places[8][kMicroVectors])(const MicroPlaces<T>&);
  // sums[0, count) += factors[0] * row 0 + … of kAddedRows rows of a matrix. The rows after them are fetched ahead.
  void (*add_rows)(const T* rows, long stride, const T* factors, long count, T* sums);
};

extern const MicroTable<float> kBaseFloat;
extern const MicroTable<double> kBaseDouble;
extern const MicroTable<float> kAvx512Float;  // empty where the compiler has no AVX-512
extern const MicroTable<double> kAvx512Double;

}  // namespace oar::cpu
