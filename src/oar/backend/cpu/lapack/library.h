// LAPACK by OpenBLAS, loaded when a matrix is first too large for our own loops. It may be missing.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace oar::cpu::lapack {

using Int = int32_t;

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using real_t = typename RealOf<T>::type;
template <class T>
inline constexpr bool kComplex = !std::is_same_v<T, real_t<T>>;

// The routines of one element type. Matrices are in column order; a text has its length as an argument at the end, as Fortran
// passes it.
template <class T>
struct Routines {
  using R = real_t<T>;
  using C = std::complex<R>;
  template <class Real, class Complex>
  using ByKind = std::conditional_t<kComplex<T>, Complex, Real>;

  void (*gemm)(const char* turn_a, const char* turn_b, const Int* m, const Int* n, const Int* k,
               const T* alpha, const T* a, const Int* lda, const T* b, const Int* ldb,
               const T* beta, T* c, const Int* ldc, size_t, size_t);
  void (*trsm)(const char* side, const char* uplo, const char* turn, const char* diagonal,
               const Int* m, const Int* n, const T* alpha, const T* a, const Int* lda, T* b,
               const Int* ldb, size_t, size_t, size_t, size_t);
  void (*potrf)(const char* uplo, const Int* n, T* a, const Int* lda, Int* info, size_t);
  void (*getrf)(const Int* m, const Int* n, T* a, const Int* lda, Int* pivots, Int* info);
  void (*getrs)(const char* turn, const Int* n, const Int* columns, const T* a, const Int* lda,
                const Int* pivots, T* b, const Int* ldb, Int* info, size_t);
  void (*getri)(const Int* n, T* a, const Int* lda, const Int* pivots, T* work, const Int* size,
                Int* info);
  void (*gelqf)(const Int* m, const Int* n, T* a, const Int* lda, T* tau, T* work, const Int* size,
                Int* info);
  // orglq, unglq
  void (*glq)(const Int* m, const Int* n, const Int* k, T* a, const Int* lda, const T* tau, T* work,
              const Int* size, Int* info);
  // syevd, heevd
  ByKind<void (*)(const char* job, const char* uplo, const Int* n, T* a, const Int* lda, R* w,
                  T* work, const Int* size, Int* integers, const Int* integer_size, Int* info,
                  size_t, size_t),
         void (*)(const char* job, const char* uplo, const Int* n, T* a, const Int* lda, R* w,
                  T* work, const Int* size, R* reals, const Int* real_size, Int* integers,
                  const Int* integer_size, Int* info, size_t, size_t)>
      evd;
  ByKind<void (*)(const char* job, const Int* m, const Int* n, T* a, const Int* lda, R* s, T* u,
                  const Int* ldu, T* vt, const Int* ldvt, T* work, const Int* size, Int* integers,
                  Int* info, size_t),
         void (*)(const char* job, const Int* m, const Int* n, T* a, const Int* lda, R* s, T* u,
                  const Int* ldu, T* vt, const Int* ldvt, T* work, const Int* size, R* reals,
                  Int* integers, Int* info, size_t)>
      gesdd;
  ByKind<void (*)(const Int* m, const Int* n, const Int* columns, T* a, const Int* lda, T* b,
                  const Int* ldb, R* s, const R* rcond, Int* rank, T* work, const Int* size,
                  Int* integers, Int* info),
         void (*)(const Int* m, const Int* n, const Int* columns, T* a, const Int* lda, T* b,
                  const Int* ldb, R* s, const R* rcond, Int* rank, T* work, const Int* size,
                  R* reals, Int* integers, Int* info)>
      gelsd;
  ByKind<void (*)(const char* left, const char* right, const Int* n, T* a, const Int* lda, R* real,
                  R* imaginary, T* vl, const Int* ldvl, T* vr, const Int* ldvr, T* work,
                  const Int* size, Int* info, size_t, size_t),
         void (*)(const char* left, const char* right, const Int* n, T* a, const Int* lda, C* w,
                  T* vl, const Int* ldvl, T* vr, const Int* ldvr, T* work, const Int* size,
                  R* reals, Int* info, size_t, size_t)>
      geev;
};

// The table of float, double or a complex type. A user's error that says what to install if there is no library.
template <class T>
const Routines<T>& routines();
extern template const Routines<float>& routines<float>();
extern template const Routines<double>& routines<double>();
extern template const Routines<std::complex<float>>& routines<std::complex<float>>();
extern template const Routines<std::complex<double>>& routines<std::complex<double>>();

// While alive, the library uses this many threads when this thread calls it.
class LibraryThreads {
 public:
  explicit LibraryThreads(int count);
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  int outer_ = 0;
};

}  // namespace oar::cpu::lapack
