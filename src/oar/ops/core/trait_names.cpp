#include "oar/ops/core/trait_names.h"

namespace oar {

std::span<const TraitName> trait_names() {
  static constexpr TraitName kNames[] = {{Trait::Elementwise, "elementwise"},
                                         {Trait::Broadcast, "broadcast"},
                                         {Trait::Promote, "promote"},
                                         {Trait::FloatMath, "float_math"},
                                         {Trait::Linear, "linear"},
                                         {Trait::Reduction, "reduction"},
                                         {Trait::Random, "random"},
                                         {Trait::View, "view"},
                                         {Trait::Inplace, "inplace"},
                                         {Trait::DataDependent, "data_dependent"},
                                         {Trait::NoGrad, "no_grad"},
                                         {Trait::Rowwise, "rowwise"},
                                         {Trait::SelectedRows, "selected_rows"},
                                         {Trait::HasInplace, "has_inplace"},
                                         {Trait::MayFail, "may_fail"},
                                         {Trait::BackwardMark, "backward_mark"},
                                         {Trait::Arithmetic, "arithmetic"},
                                         {Trait::Moves, "moves"},
                                         {Trait::Packed, "packed"},
                                         {Trait::Exchanges, "exchanges"}};
  return kNames;
}

}  // namespace oar
