// Class numbers as rows.
#include "oar/backend/cpu/loops/copy.h"
#include "oar/backend/cpu/loops/loops.h"

namespace oar::cpu {
namespace {

void one_hot(KernelCall& call) {
  const oar_tensor &x = call.in(0), &out = call.out();
  const int64_t classes = call.arg(1).as_int();
  const TemporaryTensor at(dims_of(x), DType::Int64);
  copy_elements(*at, x);
  visit<kFloats>(dtype_of(out), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* o = static_cast<T*>(out.data);
    parallel_for(0, x.numel, std::max<int64_t>(1, kGrain / classes),
                 [&](int64_t begin, int64_t end) {
                   std::fill(o + begin * classes, o + end * classes, T(0));
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t place = at.data<int64_t>()[i];
                     user_check(place >= 0 && place < classes, ErrorKind::OutOfRange,
                                "x holds {}, which is not one of {} classes (0 to {}).", place,
                                classes, classes - 1);
                     o[i * classes + place] = T(1);
                   }
                 });
  });
}

}  // namespace

KernelList labels_kernels() {
  static const oar_kernel list[] = {
      {"one_hot", 1, "cpu:generic", nullptr, kernel_entry<one_hot>},
  };
  return list;
}

}  // namespace oar::cpu
